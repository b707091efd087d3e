// SPDX-License-Identifier: MIT
// The cache: graphs that repeat the last one with new tensors, as each token of a generation does.
// One walk compares every tensor with the cached graph, O(nodes + edges); then they take the places
// of their predecessors. Placement, partition and plan are those of the last graph.
#include "sched/replay.h"

#include "base/array.h"
#include "base/env.h"
#include "base/mem.h"
#include "sched/sched.h"
#include "tensor/tensor_impl.h"

void sched_cache_begin(struct sched_cache *cache) {
    const char *setting = ggml_env(GGML_ENV_GGML_SCHED_CACHE);
    cache->off = setting && strcmp(setting, "0") == 0;
}

void sched_cache_free(struct sched_cache *cache) {
    ggml_mem_free(cache->values);
    ggml_mem_free(cache->tensors);
}

// --- comparing

// Whether the tensor has memory of its own where the cached one had, in the same kind of buffer:
// placement depends on both.
static bool same_memory(const struct sched_graph *graph, const struct sched_value *value,
                        const struct ggml_tensor *tensor) {
    const bool allocated = tensor->buffer || tensor->data;
    if (allocated != ((value->traits & SCHED_HAS_MEMORY) != 0)) return false;
    if (!tensor->buffer) return value->memory < 0 && !(value->traits & SCHED_WEIGHT);
    const bool weight = tensor->buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    if (weight != ((value->traits & SCHED_WEIGHT) != 0)) return false;
    return tensor->view_src ||
           (value->memory >= 0 && tensor->buffer->buft == graph->memories[value->memory].buft);
}

// A padding that is not zero may refer to what is not compared.
static bool is_extended(const struct ggml_tensor *tensor) {
    static const char zero[sizeof(tensor->padding)];
    return memcmp(tensor->padding, zero, sizeof(zero)) != 0;
}

// The bytes of a tensor that are compared.
static const char *compared_bytes(const struct ggml_tensor *tensor) {
    return (const char *)tensor + offsetof(struct ggml_tensor, ne);
}

static bool same_tensor(const struct sched_cached_value *cached, const struct ggml_tensor *tensor) {
    return memcmp(cached->bytes, compared_bytes(tensor), sizeof(cached->bytes)) == 0 &&
           cached->type == (int32_t)tensor->type && cached->view_offs == tensor->view_offs &&
           !is_extended(tensor);
}

// Whether the tensor views the memory of the one that stands for the cached one's root by now.
static bool same_root(const struct ggml_backend_sched *sched, int32_t number,
                      struct ggml_tensor *tensor) {
    const int32_t root = sched->graph.values[number].root;
    return (root != number) == (tensor->view_src != NULL) &&
           (root == number || sched->cache.tensors[root] == tensor_root(tensor));
}

// Whether the node reads the tensors that by now stand for the cached ones, in the same slots.
static bool same_sources(const struct ggml_backend_sched *sched, int32_t node,
                         const struct ggml_tensor *tensor) {
    int32_t e = sched->graph.first_edge[node];
    const int32_t end = sched->graph.first_edge[node + 1];
    const int n_sources = tensor_count_sources(tensor);
    for (int32_t k = 0; k < n_sources; ++k) {
        if (!tensor->src[k] || tensor->src[k] == tensor) continue;
        const struct live_edge *edge = &sched->graph.edges[e];
        if (e == end || edge->slot != k || sched->cache.tensors[edge->value] != tensor->src[k])
            return false;
        ++e;
    }
    return e == end;
}

// Whether these tensors are like the values from `first` on; they stand for them from then on.
static bool same_list(const struct ggml_backend_sched *sched, struct ggml_tensor **tensors,
                      int32_t n, int32_t first) {
    for (int32_t i = first; i < first + n; ++i) {
        struct ggml_tensor *tensor = tensors[i - first];
        if (!tensor || !same_tensor(&sched->cache.values[i], tensor) ||
            !same_memory(&sched->graph, &sched->graph.values[i], tensor) ||
            !same_root(sched, i, tensor) || (first == 0 && !same_sources(sched, i, tensor))) {
            return false;
        }
        sched->cache.tensors[i] = tensor;
    }
    return true;
}

// What else uses nodes of a part of another graph may change without the part.
static bool is_part(const struct ggml_cgraph *graph) {
    return graph->size == 0;
}

// Tensors that only nodes mention stand for themselves, and have been met as what nodes refer to.
static bool same_mentioned(const struct ggml_backend_sched *sched) {
    bool same = true;
    for (int32_t i = sched->graph.n_nodes + sched->graph.n_leafs; i < sched->graph.n_values && same;
         ++i) {
        struct ggml_tensor *tensor = sched->cache.tensors[i];
        same = same_tensor(&sched->cache.values[i], tensor) &&
               same_memory(&sched->graph, &sched->graph.values[i], tensor) &&
               same_root(sched, i, tensor);
    }
    return same;
}

// Cheap conditions first. Leafs before nodes, so that every source is known by the time it is
// compared.
static bool repeats(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    return sched->cache.valid && sched->setup.n_pins == 0 && !graph->error && !is_part(graph) &&
           graph->n_nodes == sched->graph.n_nodes && graph->n_leafs == sched->graph.n_leafs &&
           same_list(sched, graph->leafs, graph->n_leafs, graph->n_nodes) &&
           same_list(sched, graph->nodes, graph->n_nodes, 0) && same_mentioned(sched);
}

// --- repeating

// Copies get the memory of those of the last graph, and each split a graph. Sources are replaced by
// copies when nothing can fail any more.
static bool repeat(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct tensor_pool *pool = sched_next_frame(&sched->setup, &sched->runs);
    sched_graph_renew(&sched->graph, sched->cache.tensors);
    if (!sched_copies_make(&sched->setup, &sched->graph, &sched->partition, sched->runs.slot, pool,
                           &sched->copies) ||
        !sched_bind(&sched->setup, &sched->graph, &sched->live, &sched->plan, &sched->partition,
                    &sched->copies)) {
        return false;
    }
    if (!sched_subgraphs_repeat(&sched->subgraphs, &sched->graph, &sched->partition, graph,
                                &sched_frame(&sched->runs)->parts)) {
        sched_unbind(&sched->graph, &sched->partition, &sched->copies);
        return false;
    }
    sched_read_copies(&sched->graph, &sched->partition, &sched->copies);
    return true;
}

bool sched_cache_replay(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    if (!repeats(sched, graph)) return false;
    sched->bound = repeat(sched, graph);
    if (!sched->bound) {
        sched->cache.valid = false;
        sched->source = NULL;
        sched->source_uid = 0;
        return false;
    }
    sched_set_last_graph(sched, graph);
    return true;
}

// --- remembering

// Copies what same_tensor() compares, as the tensors themselves may be freed before the next graph.
static void remember_tensor(const struct ggml_tensor *tensor, struct sched_cached_value *out) {
    memcpy(out->bytes, compared_bytes(tensor), sizeof(out->bytes));
    out->view_offs = tensor->view_offs;
    out->type = tensor->type;
}

// Whether the graph is as large as the one before. It may still differ: repeats() finds out.
static bool looks_alike(const struct sched_graph *graph, struct sched_cache *cache) {
    const bool alike = cache->n_nodes == graph->n_nodes && cache->n_leafs == graph->n_leafs &&
                       cache->n_edges == graph->n_edges;
    cache->n_nodes = graph->n_nodes;
    cache->n_leafs = graph->n_leafs;
    cache->n_edges = graph->n_edges;
    return alike;
}

// Graphs out of order are left out: comparing has to meet a tensor before what refers to it.
static bool can_recur(const struct ggml_backend_sched *sched) {
    return !sched->cache.off && sched->setup.pipeline_depth == 1 && sched->setup.n_pins == 0 &&
           !is_part(sched->source) && sched->graph.in_order;
}

void sched_cache_remember(struct ggml_backend_sched *sched) {
    const struct sched_graph *graph = &sched->graph;
    struct sched_cache *cache = &sched->cache;
    const int32_t n = graph->n_values;
    cache->valid =
        looks_alike(graph, cache) && can_recur(sched) &&
        array_grow(&cache->values, &cache->values_capacity, n, sizeof(cache->values[0])) &&
        array_grow(&cache->tensors, &cache->tensors_capacity, n, sizeof(cache->tensors[0]));
    for (int32_t i = 0; i < n && cache->valid; ++i) {
        cache->tensors[i] = graph->values[i].tensor;
        remember_tensor(graph->values[i].tensor, &cache->values[i]);
    }
}
