// SPDX-License-Identifier: MIT
// Makes a plan: numbers the tensors of a graph, gives owners of memory a pool and a size, and
// leaves live ranges and in-place reuse to liveness.c, offsets to the offline planner. Linear in
// nodes and sources, but for that planner.
#include <limits.h>

#include "alloc/gallocr.h"
#include "alloc/offsets.h"
#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"
#include "tensor/tensor_impl.h"

enum { NONE = -1, BEFORE_ALL = -1 };

// The plan that is made, and what it is made of.
struct planner {
    const struct ggml_gallocr *galloc;
    const struct ggml_cgraph *graph;
    const int *node_ids;
    const int *leaf_ids;
    struct graph_plan *plan;
    struct plan_scratch *scratch;
    int32_t n_edges;
    int32_t n_placed; // entries that the plan gives memory
};

// Arrays stay, so that planning again rarely allocates.
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

// Nothing is needed of it but memory: the next plan makes all anew.
void plan_scratch_free(struct plan_scratch *scratch) {
    tensor_index_free(&scratch->index);
    void *const arrays[] = {scratch->ranges,     scratch->last,         scratch->offsets,
                            scratch->placed,     scratch->edges,        scratch->node_entries,
                            scratch->first_edge, scratch->inplace_steps};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); ++i) {
        ggml_mem_free(arrays[i]);
    }
    *scratch = (struct plan_scratch){0};
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
    const int64_t n = (int64_t)plan->n_entries + 1;
    return tensor_index_grow(&scratch->index, list_of(plan)) &&
           array_grow(&plan->entries, &plan->entries_capacity, n, sizeof(plan->entries[0])) &&
           array_grow(&scratch->ranges, &scratch->ranges_capacity, n, sizeof(scratch->ranges[0]));
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
        .root = entry,
        .inplace_src = -1,
        .traits = plan_traits(tensor),
    };
    tensor_index_add(index, list_of(plan), tensor, entry);
    planner->scratch->ranges[entry] = (struct live_range){.pool = -1, .from = NONE, .root = entry};
    return entry;
}

// Entry of a tensor, and of the root whose memory it views.
static int32_t add(struct planner *planner, struct ggml_tensor *tensor) {
    const int32_t entry = add_one(planner, tensor);
    if (entry < 0 || !tensor->view_src || planner->plan->entries[entry].root != entry) return entry;
    const int32_t root = add_one(planner, tensor_root(tensor));
    if (root < 0) return NONE;
    planner->plan->entries[entry].root = planner->scratch->ranges[entry].root = root;
    return entry;
}

// Makes room for the sources of one more node.
static bool grow_sources(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    struct plan_scratch *scratch = planner->scratch;
    return array_grow(&plan->sources, &plan->sources_capacity,
                      (int64_t)plan->n_sources + GGML_MAX_SRC, sizeof(plan->sources[0])) &&
           array_grow(&scratch->edges, &scratch->edges_capacity,
                      (int64_t)planner->n_edges + GGML_MAX_SRC, sizeof(scratch->edges[0]));
}

// A node and what it reads.
static bool add_node(struct planner *planner, int i) {
    struct graph_plan *plan = planner->plan;
    struct ggml_tensor *node = planner->graph->nodes[i];
    const int32_t dst = add(planner, node);
    uint32_t slots = 0;
    if (dst < 0 || !grow_sources(planner)) return false;
    planner->scratch->node_entries[i] = dst;
    planner->scratch->first_edge[i] = planner->n_edges;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!node->src[k]) continue;
        const int32_t src = add(planner, node->src[k]);
        if (src < 0) return false;
        slots |= 1u << k;
        plan->sources[plan->n_sources++] = src;
        if (src == dst) continue; // ggml_cast names its own result
        plan->entries[src].used = true;
        planner->scratch->edges[planner->n_edges++] = (struct live_edge){
            .value = src,
            .entry = plan->entries[src].root,
            .slot = (int16_t)k,
            .same_layout = live_can_take_over(node, node->src[k]),
        };
    }
    plan->nodes[i] = (struct plan_node){dst, slots};
    return true;
}

// Arrays by node, and one element more, so that none is NULL for an empty graph.
static bool make_room_for_nodes(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    struct plan_scratch *scratch = planner->scratch;
    const int64_t n = (int64_t)plan->n_nodes + 1;
    return array_grow(&plan->nodes, &plan->nodes_capacity, n, sizeof(plan->nodes[0])) &&
           array_grow(&scratch->node_entries, &scratch->node_entries_capacity, n,
                      sizeof(scratch->node_entries[0])) &&
           array_grow(&scratch->first_edge, &scratch->first_edge_capacity, n,
                      sizeof(scratch->first_edge[0])) &&
           array_grow(&scratch->inplace_steps, &scratch->inplace_steps_capacity, n,
                      sizeof(scratch->inplace_steps[0]));
}

// Entries in the order of leafs and then nodes, in which graph_plan_use() meets them again.
static bool add_all(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    const size_t n_nodes = (size_t)plan->n_nodes, n_leafs = (size_t)plan->n_leafs;
    bool good =
        make_room_for_nodes(planner) &&
        array_grow(&plan->leafs, &plan->leafs_capacity, plan->n_leafs, sizeof(plan->leafs[0])) &&
        tensor_index_clear(&planner->scratch->index, n_nodes + n_leafs);
    for (int i = 0; i < plan->n_leafs && good; ++i) {
        plan->leafs[i] = add(planner, planner->graph->leafs[i]);
        good = plan->leafs[i] >= 0;
    }
    for (int i = 0; i < plan->n_nodes && good; ++i) {
        good = add_node(planner, i);
    }
    if (good) planner->scratch->first_edge[plan->n_nodes] = planner->n_edges;
    return good;
}

// --- owners of memory

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

// Gives the entry memory of that buffer's pool from step `first` on, unless it has some.
static bool define(struct planner *planner, int32_t number, int32_t first, int id) {
    const struct ggml_tensor *tensor = planner->plan->entries[number].tensor;
    struct live_range *range = &planner->scratch->ranges[number];
    const int pool = planner->galloc->pool_of[id];
    if (range->pool >= 0 || !needs_memory(tensor)) return true;
    if (!padded_size(&planner->galloc->pools[pool], tensor, &range->size)) return false;
    range->pool = pool;
    range->first = first;
    planner->scratch->placed[planner->n_placed++] = number;
    return true;
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
        good = define(planner, plan->leafs[i], BEFORE_ALL,
                      planner->leaf_ids ? planner->leaf_ids[i] : 0);
    }
    for (int i = 0; i < plan->n_nodes && good; ++i) {
        const struct plan_node *refs = &plan->nodes[i];
        if (plan->entries[refs->dst].traits & SET_BEFORE) {
            good = define(planner, refs->dst, BEFORE_ALL, node_id(planner, i));
        }
        for (uint32_t rest = refs->slots; rest != 0 && good; rest &= rest - 1) {
            const int32_t src = *source++;
            if (!(plan->entries[src].traits & GGML_TENSOR_FLAG_INPUT)) continue;
            good = define(planner, src, BEFORE_ALL, node_id(planner, i));
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
        if (src != refs->dst && !define(planner, entries[src].root, BEFORE_ALL, id)) return false;
    }
    const int32_t root = entries[refs->dst].root;
    return define(planner, root, root == refs->dst ? i : BEFORE_ALL, id);
}

// All owners of memory: those that are set from outside, then in execution order.
static bool define_all(struct planner *planner) {
    bool good = define_inputs(planner);
    const int32_t *sources = planner->plan->sources;
    for (int i = 0; i < planner->plan->n_nodes && good; ++i) {
        good = define_node(planner, i, sources);
        sources += __builtin_popcount(planner->plan->nodes[i].slots);
    }
    return good;
}

// --- live ranges

// What is an output, or was made for nobody inside the graph, stays. A view that computes nothing
// only marks a dependency.
static void keep_results(const struct planner *planner, struct liveness *liveness) {
    enum { MARKER = PLAN_LEAF | PLAN_VIEW };
    const struct graph_plan *plan = planner->plan;
    for (int i = 0; i < plan->n_nodes; ++i) {
        const struct plan_entry *dst = &plan->entries[plan->nodes[i].dst];
        const bool marker = (dst->traits & MARKER) == MARKER;
        if (!dst->used && !marker) liveness_keep(liveness, plan->nodes[i].dst);
    }
    for (int32_t i = 0; i < plan->n_entries; ++i) {
        if (plan->entries[i].traits & GGML_TENSOR_FLAG_OUTPUT) liveness_keep(liveness, i);
    }
}

// Hands the graph to liveness.c: uses, what has to stay to the end, in-place reuse.
static void find_ranges(const struct planner *planner) {
    const struct plan_scratch *scratch = planner->scratch;
    struct liveness liveness = {
        .n_steps = planner->plan->n_nodes,
        .n_entries = planner->plan->n_entries,
        .entries = scratch->node_entries,
        .first_edge = scratch->first_edge,
        .edges = scratch->edges,
        .ranges = scratch->ranges,
        .last = scratch->last,
        .inplace_steps = scratch->inplace_steps,
    };
    liveness_find_uses(&liveness);
    keep_results(planner, &liveness);
    liveness_keep_unused(&liveness, scratch->placed, planner->n_placed);
    liveness_find_takeovers(&liveness);
}

// --- places

// Slot of the source whose memory a node takes over: the node reads it once. -1: none.
static int8_t inplace_slot(const struct planner *planner, int i) {
    const struct plan_scratch *scratch = planner->scratch;
    const int32_t from = scratch->ranges[scratch->node_entries[i]].from;
    int8_t slot = -1;
    for (int32_t e = scratch->first_edge[i]; e < scratch->first_edge[i + 1] && from >= 0; ++e) {
        if (scratch->edges[e].entry == from) slot = (int8_t)scratch->edges[e].slot;
    }
    return slot;
}

// Copies into the plan what graph_plan_use() needs.
static void write_entries(struct planner *planner) {
    struct graph_plan *plan = planner->plan;
    for (int32_t i = 0; i < plan->n_entries; ++i) {
        const struct live_range *range = &planner->scratch->ranges[i];
        plan->entries[i].pool = range->pool;
        plan->entries[i].size = range->size;
        if (range->pool < 0) continue;
        plan->entries[i].chunk = planner->scratch->offsets[i].chunk;
        plan->entries[i].offset = planner->scratch->offsets[i].offset;
    }
    for (int i = 0; i < plan->n_nodes; ++i) {
        plan->entries[plan->nodes[i].dst].inplace_src = inplace_slot(planner, i);
    }
}

// Arrays by entry, and one element more, so that none is NULL for an empty graph.
static bool make_room_for_entries(struct planner *planner) {
    struct plan_scratch *scratch = planner->scratch;
    const int64_t n = (int64_t)planner->plan->n_entries + 1;
    return array_grow(&scratch->ranges, &scratch->ranges_capacity, n, sizeof(scratch->ranges[0])) &&
           array_grow(&scratch->last, &scratch->last_capacity, n, sizeof(scratch->last[0])) &&
           array_grow(&scratch->offsets, &scratch->offsets_capacity, n,
                      sizeof(scratch->offsets[0])) &&
           array_grow(&scratch->placed, &scratch->placed_capacity, n, sizeof(scratch->placed[0]));
}

// Owners of memory, live ranges, then the plan of every pool.
static bool place_all(struct planner *planner) {
    const struct ggml_gallocr *galloc = planner->galloc;
    const struct plan_scratch *scratch = planner->scratch;
    if (!make_room_for_entries(planner) || !define_all(planner)) return false;
    find_ranges(planner);
    const struct live_entries entries = {
        .ranges = scratch->ranges,
        .last = scratch->last,
        .numbers = scratch->placed,
        .n = planner->n_placed,
        .n_entries = planner->plan->n_entries,
    };
    if (!live_offsets_plan(&entries, galloc->pools, galloc->n_pools, false, scratch->offsets,
                           planner->plan->pools)) {
        return false;
    }
    write_entries(planner);
    return true;
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

// Builds into galloc->spare, so that the plan in use stays valid if this fails. False after the
// error was set.
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
    const unsigned long failures_before = ggml_fail_count();
    if (make_pools(planner.plan, galloc->n_pools) && add_all(&planner) && place_all(&planner)) {
        return true;
    }
    graph_plan_clear(planner.plan);
    if (ggml_fail_count() == failures_before) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "graph allocator: no memory to plan %d nodes",
                  graph->n_nodes);
    }
    return false;
}
