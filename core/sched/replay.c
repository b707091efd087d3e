// SPDX-License-Identifier: MIT
// Graphs that repeat the last one with new tensors, as each token of a generation does: one walk
// compares every tensor with the cached graph and binds it where its predecessor lay. Placement,
// partition and plan are those of the last graph.
#include "base/mem.h"
#include "base/status.h"
#include "sched/sched.h"

enum { MOST_PATIENCE = 64 };

// Whether the tensor has memory of its own where the cached one had, in the same kind of buffer:
// placement depends on both.
static inline bool same_memory(const struct ggml_backend_sched *sched,
                               const struct sched_value *value, const struct ggml_tensor *tensor) {
    const bool placed = tensor->buffer || tensor->data;
    if (placed != ((value->traits & SCHED_HAS_MEMORY) != 0)) return false;
    if (!tensor->buffer) return value->buft < 0 && !(value->traits & SCHED_WEIGHT);
    const bool weight = tensor->buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    if (weight != ((value->traits & SCHED_WEIGHT) != 0)) return false;
    return tensor->view_src ||
           (value->buft >= 0 && tensor->buffer->buft == sched->bufts[value->buft].buft);
}

// What else uses nodes of a part of another graph may change without the part.
static inline bool is_part(const struct ggml_cgraph *graph) {
    return graph->size == 0;
}

// What its padding refers to isn't compared.
static inline bool is_extended(const struct ggml_tensor *tensor) {
    static const char zero[sizeof(tensor->padding)];
    return memcmp(tensor->padding, zero, sizeof(zero)) != 0;
}

// Compares everything that the passes read of a tensor, except its sources and its name.
static inline bool same_tensor(const struct ggml_backend_sched *sched, int32_t number,
                               const struct ggml_tensor *tensor) {
    const struct sched_value *value = &sched->values[number];
    const struct sched_cached_value *cache = &sched->caches.graph.values[number];
    if (cache->op != (int32_t)tensor->op || cache->type != (int32_t)tensor->type ||
        cache->flags != tensor->flags || cache->view_offs != tensor->view_offs ||
        memcmp(cache->ne, tensor->ne, sizeof(cache->ne)) != 0 ||
        memcmp(cache->nb, tensor->nb, sizeof(cache->nb)) != 0 ||
        memcmp(cache->op_params, tensor->op_params, sizeof(cache->op_params)) != 0 ||
        is_extended(tensor)) {
        return false;
    }
    if (!same_memory(sched, value, tensor)) return false;
    if (!tensor->view_src) return value->root == number;
    const struct ggml_tensor *owner = tensor->view_src;
    if (owner->view_src) owner = owner->view_src;
    return value->root != number && sched->values[value->root].tensor == owner;
}

// Whether the node reads the tensors that by now stand for the cached ones, in the same slots.
static inline bool same_sources(const struct ggml_backend_sched *sched, int32_t node,
                                const struct ggml_tensor *tensor) {
    int32_t e = sched->first_edge[node];
    const int32_t end = sched->first_edge[node + 1];
    for (int32_t k = 0; k < GGML_MAX_SRC; ++k) {
        const struct ggml_tensor *src = tensor->src[k];
        if (!src || src == tensor) continue;
        if (e == end || sched->edges[e].slot != k) return false;
        if (sched->values[sched->edges[e].value].tensor != src) return false;
        ++e;
    }
    return e == end;
}

// The range of values that begins at `first` becomes these tensors. Returns -1, or after a
// difference or failure how many of them may have been bound.
static int32_t follow(struct ggml_backend_sched *sched, struct ggml_tensor **tensors, int32_t n,
                      int32_t first) {
    for (int32_t i = 0; i < n; ++i) {
        struct ggml_tensor *tensor = tensors[i];
        if (i + SCHED_FETCH_AHEAD < n) sched_fetch(tensors[i + SCHED_FETCH_AHEAD]);
        if (!tensor || !same_tensor(sched, first + i, tensor)) return i;
        if (first == 0 && !same_sources(sched, i, tensor)) return i;
        sched->values[first + i].tensor = tensor;
        if (sched_bind_value(sched, first + i) != PLAN_USED) return i + 1;
    }
    return -1;
}

// Takes the places back from the first n tensors.
static void leave(const struct ggml_backend_sched *sched, int32_t first, int32_t n) {
    for (int32_t i = first; i < first + n; ++i) {
        const struct sched_value *value = &sched->values[i];
        if (value->traits & SCHED_HAS_MEMORY) continue;
        value->tensor->buffer = NULL;
        value->tensor->data = NULL;
    }
}

// What is behind the walk over the tensors: copies, in the memory of those of the last graph, and
// one graph per split. Sources are replaced by copies when nothing can fail any more.
static bool repeat_rest(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched_next_frame(sched);
    if (!sched_make_copies(sched) || sched_bind_copies(sched) != PLAN_USED ||
        !sched_repeat_subgraphs(sched, graph)) {
        return false;
    }
    sched_read_copies(sched);
    return true;
}

// Cheap conditions first. Pins are not part of the cached graph.
static bool may_repeat(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    const struct sched_graph_cache *cache = &sched->caches.graph;
    return cache->repeatable && sched->n_pins == 0 && !graph->error && !is_part(graph) &&
           graph->n_nodes == cache->n_nodes && graph->n_leafs == cache->n_leafs;
}

// Leafs before nodes, so that every source is known by the time it is compared.
static bool replay_tensors(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    const int32_t n_nodes = graph->n_nodes, n_leafs = graph->n_leafs;
    int32_t nodes_done = 0;
    int32_t leafs_done = follow(sched, graph->leafs, n_leafs, n_nodes);
    if (leafs_done < 0) {
        leafs_done = n_leafs;
        nodes_done = follow(sched, graph->nodes, n_nodes, 0);
        if (nodes_done < 0 && repeat_rest(sched, graph)) return true;
        if (nodes_done < 0) nodes_done = n_nodes;
    }
    leave(sched, n_nodes, leafs_done);
    leave(sched, 0, nodes_done);
    return false;
}

// Drops the cached graph. If no graph ever repeated it, twice as many similar graphs in a row are
// needed before the next one is cached (exponential back-off, at most MOST_PATIENCE).
static void forget(struct sched_graph_cache *cache) {
    cache->repeatable = false;
    if (!cache->had_hit) cache->backoff = MIN(2 * cache->backoff, MOST_PATIENCE);
    cache->streak = 0;
}

bool sched_replay(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct sched_graph_cache *cache = &sched->caches.graph;
    if (!may_repeat(sched, graph)) {
        if (cache->repeatable) forget(cache);
        return false;
    }
    sched->in_place = false;
    sched->graph = NULL;
    if (!sched_reset_buffers(sched) || !replay_tensors(sched, graph)) {
        forget(cache); // the arrays are a mixture now
        return false;
    }
    cache->had_hit = true;
    cache->backoff = 1;
    sched->in_place = true;
    sched->graph = graph;
    sched->graph_uid = graph->uid = ggml_graph_next_uid();
    sched_log(sched, graph);
    return true;
}

// --- remembering

// Copies what same_tensor() compares, as the tensors themselves may be freed before the next graph.
static void remember_item(const struct ggml_tensor *tensor, struct sched_cached_value *out) {
    memcpy(out->ne, tensor->ne, sizeof(out->ne));
    memcpy(out->nb, tensor->nb, sizeof(out->nb));
    memcpy(out->op_params, tensor->op_params, sizeof(out->op_params));
    out->view_offs = tensor->view_offs;
    out->flags = tensor->flags;
    out->type = tensor->type;
    out->op = tensor->op;
}

// Whether the graph looks like the one before. It may still differ: sched_replay() finds out.
static bool looks_alike(struct ggml_backend_sched *sched) {
    struct sched_graph_cache *cache = &sched->caches.graph;
    size_t bytes = 0;
    for (int i = 0; i < sched->galloc->n_pools; ++i) {
        bytes = 31 * bytes + sched->pool_plans[i].most_live;
    }
    const bool alike = cache->n_nodes == sched->n_nodes && cache->n_leafs == sched->n_leafs &&
                       cache->n_edges == sched->n_edges &&
                       cache->n_splits == sched->partition.n_splits &&
                       cache->n_copies == sched->partition.n_copies && cache->bytes == bytes;
    cache->n_nodes = sched->n_nodes;
    cache->n_leafs = sched->n_leafs;
    cache->n_edges = sched->n_edges;
    cache->n_splits = sched->partition.n_splits;
    cache->n_copies = sched->partition.n_copies;
    cache->bytes = bytes;
    return alike;
}

void sched_remember(struct ggml_backend_sched *sched) {
    struct sched_graph_cache *cache = &sched->caches.graph;
    cache->repeatable = false;
    if (sched->caches.off || sched->pipeline_depth > 1 || sched->n_pins > 0 ||
        is_part(sched->graph))
        return;
    cache->streak = looks_alike(sched) ? cache->streak + 1 : 0;
    // A walk over leafs and then nodes has to meet everything before it is referred to.
    if (cache->streak < cache->backoff || !sched->in_order) return;
    if (!sched_grow(&cache->values, &cache->values_capacity, sched->n_values,
                    sizeof(cache->values[0]))) {
        return;
    }
    for (int32_t i = 0; i < sched->n_values; ++i) {
        remember_item(sched->values[i].tensor, &cache->values[i]);
    }
    cache->repeatable = true;
    cache->had_hit = false;
}
