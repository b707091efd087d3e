// SPDX-License-Identifier: MIT
// Makes a plan: the live range of every tensor, in-place reuse, then offsets from the planner.
// Ranges are found by one scan forward, in which the last use that is met is the last one; a second
// scan forward gives each owner of memory a block, or that of a source that ends there. Linear in
// nodes and sources. sched/liveness.c does this for graphs with a partition.
#include <limits.h>

#include "alloc/gallocr.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"

// What is found out about an entry; of a view, only `used`.
struct plan_life {
    int32_t last;  // step of the last use of it or its views; NONE
    int32_t block; // NONE: not placed yet; SETTLED: has its memory from elsewhere
    bool used;     // as a source
    bool forever;
};

enum { NONE = -1, SETTLED = -2 };

// Step 0 is before the first node; node i is computed at step i + 1.
struct planner {
    const struct ggml_gallocr *galloc;
    const struct ggml_cgraph *graph;
    const int *node_ids;
    const int *leaf_ids;
    struct graph_plan *plan;
    struct plan_scratch *scratch;
    struct plan_life *lives;
    struct memory_block *blocks;
    int32_t *block_pools;
    int32_t n_blocks;
};

void graph_plan_clear(struct graph_plan *plan) {
    for (int i = 0; plan->pools && i < plan->n_pools; ++i) {
        memory_chunks_free(&plan->pools[i]);
    }
    plan->n_nodes = -1;
    plan->n_leafs = plan->n_sources = plan->n_entries = 0;
}

void graph_plan_free(struct graph_plan *plan) {
    graph_plan_clear(plan);
    ggml_mem_free(plan->pools);
    ggml_mem_free(plan->nodes);
    ggml_mem_free(plan->leafs);
    ggml_mem_free(plan->sources);
    ggml_mem_free(plan->entries);
    *plan = (struct graph_plan){.n_nodes = -1};
}

void plan_scratch_free(struct plan_scratch *scratch) {
    tensor_index_free(&scratch->index);
    ggml_mem_free(scratch->lives);
    ggml_mem_free(scratch->blocks);
    ggml_mem_free(scratch->members);
    ggml_mem_free(scratch->block_pools);
    *scratch = (struct plan_scratch){0};
}

// Makes room for n elements in *array, keeping those that are there; false, and all is as it was,
// when memory runs out.
static bool make_room(void *array, size_t *capacity, size_t n, size_t element) {
    void *memory;
    if (n <= *capacity) return true;
    const size_t wanted = MAX(2 * *capacity, MAX(n, 64));
    if (wanted > SIZE_MAX / 2 / element) return false;
    memcpy(&memory, array, sizeof(memory));
    memory = ggml_mem_realloc(memory, wanted * element);
    if (!memory) return false;
    memcpy(array, &memory, sizeof(memory));
    *capacity = wanted;
    return true;
}

// --- entries

// Entries in the form that the tensor index takes.
static struct tensor_list list_of(const struct graph_plan *plan) {
    return (struct tensor_list){plan->entries, sizeof(plan->entries[0])};
}

// Makes room for one more entry.
static bool grow(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    struct plan_scratch *scratch = planner->scratch;
    const size_t n = (size_t)plan->n_entries + 1;
    if (n > INT32_MAX / 8) return false;
    const bool good =
        tensor_index_grow(&scratch->index, list_of(plan)) &&
        make_room(&plan->entries, &plan->entries_capacity, n, sizeof(plan->entries[0])) &&
        make_room(&scratch->lives, &scratch->lives_capacity, n, sizeof(scratch->lives[0]));
    planner->lives = scratch->lives;
    return good;
}

// Entry of a tensor, made when it is new, with root itself; NONE when memory runs out.
static inline int32_t add_one(struct planner *planner, struct ggml_tensor *tensor) {
    struct graph_plan *plan = planner->plan;
    struct tensor_index *index = &planner->scratch->index;
    const int32_t known = tensor_index_get(index, list_of(plan), tensor);
    if (known >= 0) return known;
    if (!grow(planner)) return NONE;
    const int32_t entry = plan->n_entries++;
    plan->entries[entry] = (struct plan_entry){
        .tensor = tensor,
        .pool = -1,
        .root = entry,
        .inplace_src = -1,
        .traits = plan_traits(tensor),
    };
    tensor_index_add(index, list_of(plan), tensor, entry);
    planner->lives[entry] =
        (struct plan_life){.last = NONE, .block = needs_memory(tensor) ? NONE : SETTLED};
    return entry;
}

// Entry of a tensor, and of the root whose memory it views.
static int32_t add(struct planner *planner, struct ggml_tensor *tensor) {
    const int32_t entry = add_one(planner, tensor);
    if (entry < 0 || !tensor->view_src || planner->plan->entries[entry].root != entry) return entry;
    const int32_t root = add_one(planner, tensor_root(tensor));
    if (root < 0) return NONE;
    planner->plan->entries[entry].root = root;
    return entry;
}

// A node, what it reads, and that all of it lives until then.
static bool add_node(struct planner *planner, int i) {
    struct graph_plan *plan = planner->plan;
    struct ggml_tensor *node = planner->graph->nodes[i];
    const int32_t dst = add(planner, node);
    uint32_t slots = 0;
    if (dst < 0 || !make_room(&plan->sources, &plan->sources_capacity,
                              (size_t)plan->n_sources + GGML_MAX_SRC, sizeof(plan->sources[0]))) {
        return false;
    }
    if (plan->entries[dst].root != dst) planner->lives[plan->entries[dst].root].last = i + 1;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!node->src[k]) continue;
        const int32_t src = add(planner, node->src[k]);
        if (src < 0) return false;
        slots |= 1u << k;
        plan->sources[plan->n_sources++] = src;
        if (src == dst) continue; // ggml_cast names its own result
        planner->lives[src].used = true;
        planner->lives[plan->entries[src].root].last = i + 1;
    }
    plan->nodes[i] = (struct plan_node){dst, slots};
    return true;
}

// Entries in the order of leafs and then nodes, in which graph_plan_use() meets them again.
static bool add_all(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    const size_t n_nodes = (size_t)plan->n_nodes, n_leafs = (size_t)plan->n_leafs;
    bool good = make_room(&plan->nodes, &plan->nodes_capacity, n_nodes, sizeof(plan->nodes[0])) &&
                make_room(&plan->leafs, &plan->leafs_capacity, n_leafs, sizeof(plan->leafs[0])) &&
                tensor_index_clear(&planner->scratch->index, n_nodes + n_leafs);
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

// Life of the memory that an entry lies in.
static struct plan_life *root_life(struct planner *planner, int32_t entry) {
    return &planner->lives[planner->plan->entries[entry].root];
}

// What is an output, or was made for nobody inside the graph, stays. A view that computes nothing
// only marks a dependency.
static void mark_results(struct planner *planner) {
    enum { MARKER = PLAN_LEAF | PLAN_VIEW };
    const struct graph_plan *plan = planner->plan;
    for (int i = 0; i < plan->n_nodes; ++i) {
        const int32_t dst = plan->nodes[i].dst;
        const bool marker = (plan->entries[dst].traits & MARKER) == MARKER;
        if (!planner->lives[dst].used && !marker) root_life(planner, dst)->forever = true;
    }
    for (int32_t i = 0; i < plan->n_entries; ++i) {
        const bool output = plan->entries[i].traits & GGML_TENSOR_FLAG_OUTPUT;
        struct plan_life *life = root_life(planner, i);
        life->forever |= output || life->last < 0;
    }
}

// --- blocks

// Bytes with padding; false with a message if the tensor is too large for that.
static inline bool padded_size(const struct gallocr_pool *pool, const struct ggml_tensor *tensor,
                               size_t *out_size) {
    const size_t size = plan_size(pool, tensor);
    *out_size = 0;
    if (size > SIZE_MAX / 2 - pool->alignment) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "graph allocator: tensor '%s' of %zu bytes is too large",
                  tensor->name, size);
        return false;
    }
    *out_size = GGML_PAD(size, pool->alignment);
    return true;
}

// Gives the entry a block of its own from step `first`, unless it has memory.
static bool define(struct planner *planner, int32_t number, int32_t first, int id) {
    struct plan_entry *entry = &planner->plan->entries[number];
    struct plan_life *life = &planner->lives[number];
    if (life->block != NONE) return true;
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

// Whether node i, which has no memory yet, can have that of one of its sources: nobody needs it any
// more.
static bool source_ends_here(const struct planner *planner, int i, const int32_t *sources,
                             int32_t src) {
    const struct graph_plan *plan = planner->plan;
    const struct plan_node *refs = &plan->nodes[i];
    if (src == refs->dst) return false;
    const int32_t root = plan->entries[src].root;
    const struct plan_life *life = &planner->lives[root];
    if (root == refs->dst || life->block < 0 || life->forever || life->last != i + 1) return false;
    int reads = 0;
    for (uint32_t rest = refs->slots; rest != 0; rest &= rest - 1) {
        const int32_t other = *sources++;
        reads += other != refs->dst && plan->entries[other].root == root;
    }
    return reads == 1;
}

// Gives the node the block of the first source that ends here and has its layout, pool and size;
// the block then lives as long as the node. Several nodes may hand one block on.
static bool take_over(struct planner *planner, int i, const int32_t *sources, int pool) {
    struct graph_plan *plan = planner->plan;
    const struct plan_node *refs = &plan->nodes[i];
    struct plan_entry *entry = &plan->entries[refs->dst];
    struct plan_life *life = &planner->lives[refs->dst];
    const int32_t *source = sources;
    size_t size;
    if (life->block != NONE || !ggml_op_can_inplace(entry->tensor->op)) return false;
    if (!padded_size(&planner->galloc->pools[pool], entry->tensor, &size)) return false;
    for (uint32_t rest = refs->slots; rest != 0; rest &= rest - 1) {
        const int32_t src = *source++;
        const int k = __builtin_ctz(rest);
        if (!source_ends_here(planner, i, sources, src)) continue;
        if (!can_take_over(entry->tensor, entry->tensor->src[k])) continue;
        const int32_t block = planner->lives[plan->entries[src].root].block;
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

// Buffer that the caller chose for the node.
static int node_id(const struct planner *planner, int i) {
    return planner->node_ids ? planner->node_ids[i] : 0;
}

// Leafs and inputs are set before the graph is computed.
static bool define_inputs(struct planner *planner) {
    enum { SET_BEFORE = GGML_TENSOR_FLAG_INPUT | PLAN_PARAM };
    const struct graph_plan *plan = planner->plan;
    const int32_t *source = plan->sources;
    bool good = true;
    for (int i = 0; i < plan->n_leafs && good; ++i) {
        good = define(planner, plan->leafs[i], 0, planner->leaf_ids ? planner->leaf_ids[i] : 0);
    }
    for (int i = 0; i < plan->n_nodes && good; ++i) {
        const struct plan_node *refs = &plan->nodes[i];
        if (plan->entries[refs->dst].traits & SET_BEFORE) {
            good = define(planner, refs->dst, 0, node_id(planner, i));
        }
        for (uint32_t rest = refs->slots; rest != 0 && good; rest &= rest - 1) {
            const int32_t src = *source++;
            if (!(plan->entries[src].traits & GGML_TENSOR_FLAG_INPUT)) continue;
            good = define(planner, src, 0, node_id(planner, i));
        }
    }
    return good;
}

// Node i and the sources that no earlier node has made: those are set from outside too.
static bool define_node(struct planner *planner, int i, const int32_t *sources) {
    const struct plan_node *refs = &planner->plan->nodes[i];
    const struct plan_entry *entries = planner->plan->entries;
    const int id = node_id(planner, i);
    const int32_t *source = sources;
    for (uint32_t rest = refs->slots; rest != 0; rest &= rest - 1) {
        const int32_t src = *source++;
        if (src != refs->dst && !define(planner, entries[src].root, 0, id)) return false;
    }
    if (entries[refs->dst].root != refs->dst)
        return define(planner, entries[refs->dst].root, 0, id);
    return take_over(planner, i, sources, planner->galloc->pool_of[id]) ||
           define(planner, refs->dst, i + 1, id);
}

// Blocks for all owners of memory: what is set from outside, then in execution order.
static bool define_all(struct planner *planner) {
    struct plan_scratch *scratch = planner->scratch;
    const size_t n = (size_t)planner->plan->n_entries + 1;
    if (!make_room(&scratch->blocks, &scratch->blocks_capacity, n, sizeof(scratch->blocks[0])) ||
        !make_room(&scratch->block_pools, &scratch->block_pools_capacity, n,
                   sizeof(scratch->block_pools[0]))) {
        return false;
    }
    planner->blocks = scratch->blocks;
    planner->block_pools = scratch->block_pools;
    mark_results(planner);
    bool good = define_inputs(planner);
    const int32_t *sources = planner->plan->sources;
    for (int i = 0; i < planner->plan->n_nodes && good; ++i) {
        good = define_node(planner, i, sources);
        sources += __builtin_popcount(planner->plan->nodes[i].slots);
    }
    return good;
}

// --- places

// Plans the blocks of one pool. With several pools its blocks are gathered, planned and written
// back, since the planner takes one array.
static bool place_pool(struct planner *planner, int pool, struct memory_chunks *out_chunks) {
    const size_t limit = planner->galloc->pools[pool].chunk_limit;
    if (planner->galloc->n_pools == 1) {
        return memory_plan(planner->blocks, planner->n_blocks, limit, out_chunks);
    }
    struct plan_scratch *scratch = planner->scratch;
    if (!make_room(&scratch->members, &scratch->members_capacity, (size_t)planner->n_blocks + 1,
                   sizeof(scratch->members[0]))) {
        return false;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < planner->n_blocks; ++i) {
        if (planner->block_pools[i] == pool) scratch->members[n++] = planner->blocks[i];
    }
    if (!memory_plan(scratch->members, n, limit, out_chunks)) return false;
    n = 0;
    for (int32_t i = 0; i < planner->n_blocks; ++i) {
        if (planner->block_pools[i] == pool) planner->blocks[i] = scratch->members[n++];
    }
    return true;
}

// Plans every pool, then copies each block's place to the entries that share it.
static bool place_all(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    bool good = true;
    for (int i = 0; i < plan->n_pools && good; ++i) {
        good = place_pool(planner, i, &plan->pools[i]);
    }
    for (int32_t i = 0; i < plan->n_entries && good; ++i) {
        if (planner->lives[i].block < 0) continue;
        plan->entries[i].chunk = planner->blocks[planner->lives[i].block].chunk;
        plan->entries[i].offset = planner->blocks[planner->lives[i].block].offset;
    }
    return good;
}

// false with a message if an id is not that of a buffer.
static bool ids_are_valid(const int *ids, int n, int n_buffers) {
    for (int i = 0; ids && i < n; ++i) {
        if (ids[i] >= 0 && ids[i] < n_buffers) continue;
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "graph allocator: there is no buffer %d of %d", ids[i],
                  n_buffers);
        return false;
    }
    return true;
}

// One list of chunks per pool; allocated once, as the number of pools never changes.
static bool make_pools(struct graph_plan *plan, int n_pools) {
    if (!plan->pools) plan->pools = ggml_mem_calloc((size_t)n_pools, sizeof(plan->pools[0]));
    plan->n_pools = n_pools;
    return plan->pools != NULL;
}

bool graph_plan_build(struct ggml_gallocr *galloc, const struct ggml_cgraph *graph,
                      const int *node_ids, const int *leaf_ids) {
    struct planner planner = {
        .galloc = galloc,
        .graph = graph,
        .node_ids = node_ids,
        .leaf_ids = leaf_ids,
        .plan = &galloc->spare,
        .scratch = &galloc->scratch,
    };
    graph_plan_clear(planner.plan);
    if (graph->error) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "graph allocator: the graph is in error: %s",
                  graph->error);
        return false;
    }
    if (!ids_are_valid(node_ids, graph->n_nodes, galloc->n_buffers)) return false;
    if (!ids_are_valid(leaf_ids, graph->n_leafs, galloc->n_buffers)) return false;
    planner.plan->n_nodes = graph->n_nodes;
    planner.plan->n_leafs = graph->n_leafs;
    const unsigned long told = ggml_fail_count();
    if (make_pools(planner.plan, galloc->n_pools) && add_all(&planner) && define_all(&planner) &&
        place_all(&planner)) {
        return true;
    }
    graph_plan_clear(planner.plan);
    if (ggml_fail_count() == told) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "graph allocator: no memory to plan %d nodes",
                  graph->n_nodes);
    }
    return false;
}
