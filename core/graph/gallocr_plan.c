// SPDX-License-Identifier: MIT
// From a graph to lifetimes to places.
#include <limits.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"
#include "graph/gallocr.h"

// What is found out about an entry; of a view, only `used`.
struct life {
    int32_t last;  // step of the last use of it or its views; -1: none
    int32_t block; // -1: not placed yet
    bool used;     // as a source
    bool forever;
};

// Step 0 is before the first node; node i is computed at step i + 1.
struct planner {
    const struct ggml_gallocr *galloc;
    const struct ggml_cgraph *graph;
    const int *node_ids;
    const int *leaf_ids;
    struct graph_plan *plan;
    int32_t *map; // open addressing: entry numbers by tensor address, or -1
    size_t map_mask;
    struct life *lives;
    struct memory_block *blocks;
    int32_t *block_pools;
    int32_t n_blocks;
};

void graph_plan_free(struct graph_plan *plan) {
    for (int i = 0; plan->pools && i < plan->n_pools; ++i) {
        memory_chunks_free(&plan->pools[i]);
    }
    ggml_mem_free(plan->pools);
    ggml_mem_free(plan->nodes);
    ggml_mem_free(plan->leafs);
    ggml_mem_free(plan->entries);
    *plan = (struct graph_plan){.n_nodes = -1};
}

// --- entries

static int32_t *map_slot(const struct planner *planner, const struct ggml_tensor *tensor) {
    uint64_t hash = (uint64_t)((uintptr_t)tensor >> 4) * 0x9E3779B97F4A7C15u;
    for (size_t i = (size_t)(hash >> 20);; ++i) {
        int32_t *slot = &planner->map[i & planner->map_mask];
        if (*slot < 0 || planner->plan->entries[*slot].tensor == tensor) return slot;
    }
}

// Room for at least twice as many entries as there are.
static bool grow_map(struct planner *planner) {
    const size_t size = 2 * (planner->map_mask + 1);
    int32_t *map = ggml_mem_alloc(size * sizeof(map[0]));
    if (!map) return false;
    memset(map, 0xFF, size * sizeof(map[0]));
    ggml_mem_free(planner->map);
    planner->map = map;
    planner->map_mask = size - 1;
    for (int32_t i = 0; i < planner->plan->n_entries; ++i) {
        *map_slot(planner, planner->plan->entries[i].tensor) = i;
    }
    return true;
}

static bool grow_entries(struct graph_plan *plan) {
    const int32_t capacity = plan->capacity > 0 ? 2 * plan->capacity : 64;
    if (capacity > INT32_MAX / 8) return false;
    struct plan_entry *entries =
        ggml_mem_realloc(plan->entries, (size_t)capacity * sizeof(entries[0]));
    if (!entries) return false;
    plan->entries = entries;
    plan->capacity = capacity;
    return true;
}

// Entry of a tensor, made when it is new, with root itself; -1 when memory runs out.
static int32_t add_one(struct planner *planner, struct ggml_tensor *tensor) {
    struct graph_plan *plan = planner->plan;
    if (plan->n_entries == plan->capacity && !grow_entries(plan)) return -1;
    if (2 * (size_t)plan->n_entries >= planner->map_mask && !grow_map(planner)) return -1;
    int32_t *slot = map_slot(planner, tensor);
    if (*slot >= 0) return *slot;
    *slot = plan->n_entries++;
    plan->entries[*slot] = (struct plan_entry){
        .tensor = tensor,
        .pool = -1,
        .root = *slot,
        .inplace_src = -1,
        .traits = plan_traits(tensor),
    };
    return *slot;
}

static int32_t add(struct planner *planner, struct ggml_tensor *tensor) {
    const int32_t entry = add_one(planner, tensor);
    if (entry < 0 || !tensor->view_src) return entry;
    const int32_t root = add_one(planner, tensor_root(tensor));
    if (root < 0) return -1;
    planner->plan->entries[entry].root = root;
    return entry;
}

static bool add_node(struct planner *planner, int i) {
    struct ggml_tensor *node = planner->graph->nodes[i];
    struct plan_node *refs = &planner->plan->nodes[i];
    refs->dst = add(planner, node);
    bool good = refs->dst >= 0;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        refs->src[k] = -1;
        if (!node->src[k] || !good) continue;
        refs->src[k] = add(planner, node->src[k]);
        good = refs->src[k] >= 0;
    }
    return good;
}

static bool add_all(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    plan->nodes = ggml_mem_alloc(((size_t)plan->n_nodes + 1) * sizeof(plan->nodes[0]));
    plan->leafs = ggml_mem_alloc(((size_t)plan->n_leafs + 1) * sizeof(plan->leafs[0]));
    planner->map_mask = 63;
    bool good = plan->nodes && plan->leafs && grow_map(planner);
    for (int i = 0; i < plan->n_leafs && good; ++i) {
        plan->leafs[i] = add(planner, planner->graph->leafs[i]);
        good = plan->leafs[i] >= 0;
    }
    for (int i = 0; i < plan->n_nodes && good; ++i) {
        good = add_node(planner, i);
    }
    return good;
}

// --- lifetimes

static struct life *root_life(struct planner *planner, int32_t entry) {
    return &planner->lives[planner->plan->entries[entry].root];
}

static void mark_uses(struct planner *planner) {
    const struct graph_plan *plan = planner->plan;
    for (int i = 0; i < plan->n_nodes; ++i) {
        const struct plan_node *refs = &plan->nodes[i];
        if (plan->entries[refs->dst].root != refs->dst) root_life(planner, refs->dst)->last = i + 1;
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            const int32_t src = refs->src[k];
            if (src < 0 || src == refs->dst) continue; // ggml_cast names its own result
            planner->lives[src].used = true;
            root_life(planner, src)->last = i + 1;
        }
    }
}

// What is an output, or was made for nobody inside the graph, stays. A view that computes nothing
// only marks a dependency.
static void mark_results(struct planner *planner) {
    const struct graph_plan *plan = planner->plan;
    for (int i = 0; i < plan->n_nodes; ++i) {
        const struct plan_entry *entry = &plan->entries[plan->nodes[i].dst];
        const bool marker = entry->tensor->view_src && entry->tensor->op == GGML_OP_NONE;
        if (!planner->lives[plan->nodes[i].dst].used && !marker) {
            root_life(planner, plan->nodes[i].dst)->forever = true;
        }
    }
    for (int32_t i = 0; i < plan->n_entries; ++i) {
        const bool output = plan->entries[i].tensor->flags & GGML_TENSOR_FLAG_OUTPUT;
        if (output || planner->lives[plan->entries[i].root].last < 0) {
            root_life(planner, i)->forever = true;
        }
    }
}

// --- blocks

static bool padded_size(const struct gallocr_pool *pool, const struct ggml_tensor *tensor,
                        size_t *out_size) {
    const size_t size = ggml_backend_buft_get_alloc_size(pool->buft, tensor);
    *out_size = 0;
    if (size > SIZE_MAX / 2 - pool->alignment) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "graph allocator: tensor '%s' of %zu bytes is too large",
                  tensor->name, size);
        return false;
    }
    *out_size = GGML_PAD(size, pool->alignment);
    return true;
}

static bool is_settled(const struct planner *planner, int32_t entry) {
    return planner->lives[entry].block >= 0 || !needs_memory(planner->plan->entries[entry].tensor);
}

// Gives the entry a block of its own from step `first`, unless it has memory.
static bool define(struct planner *planner, int32_t number, int32_t first, int id) {
    struct plan_entry *entry = &planner->plan->entries[number];
    struct life *life = &planner->lives[number];
    if (is_settled(planner, number)) return true;
    entry->pool = planner->galloc->pool_of[id];
    if (!padded_size(&planner->galloc->pools[entry->pool], entry->tensor, &entry->size))
        return false;
    life->block = planner->n_blocks++;
    planner->block_pools[life->block] = entry->pool;
    planner->blocks[life->block] = (struct memory_block){
        .size = entry->size,
        .first = first,
        .last = life->forever ? planner->plan->n_nodes + 1 : MAX(first, life->last),
    };
    return true;
}

// Whether node i, which has no memory yet, can have that of source k: nobody needs it any more.
static bool source_ends_here(const struct planner *planner, int i, int k) {
    const struct graph_plan *plan = planner->plan;
    const struct plan_node *refs = &plan->nodes[i];
    if (refs->src[k] < 0 || refs->src[k] == refs->dst) return false;
    const int32_t root = plan->entries[refs->src[k]].root;
    const struct life *life = &planner->lives[root];
    if (root == refs->dst || life->block < 0 || life->forever || life->last != i + 1) return false;
    int reads = 0;
    for (int other = 0; other < GGML_MAX_SRC; ++other) {
        const int32_t src = refs->src[other];
        reads += src >= 0 && src != refs->dst && plan->entries[src].root == root;
    }
    return reads == 1;
}

static bool take_over(struct planner *planner, int i, int pool) {
    struct graph_plan *plan = planner->plan;
    const struct plan_node *refs = &plan->nodes[i];
    struct plan_entry *entry = &plan->entries[refs->dst];
    struct life *life = &planner->lives[refs->dst];
    size_t size;
    if (!ggml_op_can_inplace(entry->tensor->op) || is_settled(planner, refs->dst)) return false;
    if (!padded_size(&planner->galloc->pools[pool], entry->tensor, &size)) return false;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!source_ends_here(planner, i, k)) continue;
        if (!can_take_over(entry->tensor, entry->tensor->src[k])) continue;
        const int32_t block = planner->lives[plan->entries[refs->src[k]].root].block;
        if (planner->block_pools[block] != pool || planner->blocks[block].size != size) continue;
        entry->pool = pool;
        entry->size = size;
        entry->inplace_src = (int8_t)k;
        life->block = block;
        planner->blocks[block].last = life->forever ? plan->n_nodes + 1 : MAX(i + 1, life->last);
        return true;
    }
    return false;
}

static int node_id(const struct planner *planner, int i) {
    return planner->node_ids ? planner->node_ids[i] : 0;
}

// Leafs and inputs are set before the graph is computed.
static bool define_inputs(struct planner *planner) {
    const struct graph_plan *plan = planner->plan;
    bool good = true;
    for (int i = 0; i < plan->n_leafs && good; ++i) {
        good = define(planner, plan->leafs[i], 0, planner->leaf_ids ? planner->leaf_ids[i] : 0);
    }
    for (int i = 0; i < plan->n_nodes && good; ++i) {
        const struct plan_node *refs = &plan->nodes[i];
        if (plan->entries[refs->dst].tensor->flags &
            (GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_PARAM)) {
            good = define(planner, refs->dst, 0, node_id(planner, i));
        }
        for (int k = 0; k < GGML_MAX_SRC && good; ++k) {
            if (refs->src[k] < 0) continue;
            if (!(plan->entries[refs->src[k]].tensor->flags & GGML_TENSOR_FLAG_INPUT)) continue;
            good = define(planner, refs->src[k], 0, node_id(planner, i));
        }
    }
    return good;
}

// Node i and the sources that no earlier node has made: those are set from outside too.
static bool define_node(struct planner *planner, int i) {
    const struct plan_node *refs = &planner->plan->nodes[i];
    const struct plan_entry *entries = planner->plan->entries;
    const int id = node_id(planner, i);
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (refs->src[k] < 0 || refs->src[k] == refs->dst) continue;
        if (!define(planner, entries[refs->src[k]].root, 0, id)) return false;
    }
    if (entries[refs->dst].root != refs->dst)
        return define(planner, entries[refs->dst].root, 0, id);
    return take_over(planner, i, planner->galloc->pool_of[id]) ||
           define(planner, refs->dst, i + 1, id);
}

static bool define_all(struct planner *planner) {
    const size_t n = (size_t)planner->plan->n_entries + 1;
    planner->lives = ggml_mem_calloc(n, sizeof(planner->lives[0]));
    planner->blocks = ggml_mem_alloc(n * sizeof(planner->blocks[0]));
    planner->block_pools = ggml_mem_alloc(n * sizeof(planner->block_pools[0]));
    if (!planner->lives || !planner->blocks || !planner->block_pools) return false;
    for (int32_t i = 0; i < planner->plan->n_entries; ++i) {
        planner->lives[i].last = planner->lives[i].block = -1;
    }
    mark_uses(planner);
    mark_results(planner);
    bool good = define_inputs(planner);
    for (int i = 0; i < planner->plan->n_nodes && good; ++i) {
        good = define_node(planner, i);
    }
    return good;
}

// --- places

static bool place_pool(struct planner *planner, int pool, struct memory_block *members,
                       struct memory_chunks *out_chunks) {
    int32_t n = 0;
    for (int32_t i = 0; i < planner->n_blocks; ++i) {
        if (planner->block_pools[i] == pool) members[n++] = planner->blocks[i];
    }
    if (!memory_plan(members, n, planner->galloc->pools[pool].chunk_limit, out_chunks))
        return false;
    n = 0;
    for (int32_t i = 0; i < planner->n_blocks; ++i) {
        if (planner->block_pools[i] == pool) planner->blocks[i] = members[n++];
    }
    return true;
}

static bool place_all(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    struct memory_block *members =
        ggml_mem_alloc(((size_t)planner->n_blocks + 1) * sizeof(members[0]));
    plan->pools = ggml_mem_calloc((size_t)plan->n_pools, sizeof(plan->pools[0]));
    bool good = members && plan->pools;
    for (int i = 0; i < plan->n_pools && good; ++i) {
        good = place_pool(planner, i, members, &plan->pools[i]);
    }
    for (int32_t i = 0; i < plan->n_entries && good; ++i) {
        if (planner->lives[i].block < 0) continue;
        plan->entries[i].chunk = planner->blocks[planner->lives[i].block].chunk;
        plan->entries[i].offset = planner->blocks[planner->lives[i].block].offset;
    }
    ggml_mem_free(members);
    return good;
}

static bool ids_are_valid(const int *ids, int n, int n_buffers) {
    for (int i = 0; ids && i < n; ++i) {
        if (ids[i] >= 0 && ids[i] < n_buffers) continue;
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "graph allocator: there is no buffer %d of %d", ids[i],
                  n_buffers);
        return false;
    }
    return true;
}

bool graph_plan_build(const struct ggml_gallocr *galloc, const struct ggml_cgraph *graph,
                      const int *node_ids, const int *leaf_ids, struct graph_plan *out_plan) {
    struct planner planner = {
        .galloc = galloc,
        .graph = graph,
        .node_ids = node_ids,
        .leaf_ids = leaf_ids,
        .plan = out_plan,
    };
    *out_plan = (struct graph_plan){.n_nodes = -1};
    if (graph->error) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "graph allocator: the graph is in error: %s",
                  graph->error);
        return false;
    }
    if (!ids_are_valid(node_ids, graph->n_nodes, galloc->n_buffers)) return false;
    if (!ids_are_valid(leaf_ids, graph->n_leafs, galloc->n_buffers)) return false;
    out_plan->n_nodes = graph->n_nodes;
    out_plan->n_leafs = graph->n_leafs;
    out_plan->n_pools = galloc->n_pools;
    const unsigned long told = ggml_fail_count();
    const bool good = add_all(&planner) && define_all(&planner) && place_all(&planner);
    if (!good) {
        graph_plan_free(out_plan);
        if (ggml_fail_count() == told) {
            ggml_fail(GGML_HOST_OUT_OF_MEMORY, "graph allocator: no memory to plan %d nodes",
                      graph->n_nodes);
        }
    }
    ggml_mem_free(planner.map);
    ggml_mem_free(planner.lives);
    ggml_mem_free(planner.blocks);
    ggml_mem_free(planner.block_pools);
    return good;
}
