// SPDX-License-Identifier: MIT
// The cache: graphs that repeat the last one with new tensors, as each token of a generation does.
// One walk compares every tensor with the cached graph, O(nodes + edges).
#include "sched/pass/cache.h"

#include "base/array.h"
#include "base/env.h"
#include "base/mem.h"
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
static bool same_root(const struct sched_cache *cache, const struct sched_graph *graph,
                      int32_t number, struct ggml_tensor *tensor) {
    const int32_t root = graph->values[number].root;
    return (root != number) == (tensor->view_src != NULL) &&
           (root == number || cache->tensors[root] == tensor_root(tensor));
}

// Whether the node reads the tensors that by now stand for the cached ones, in the same slots.
static bool same_sources(const struct sched_cache *cache, const struct sched_graph *graph,
                         int32_t node, const struct ggml_tensor *tensor) {
    int32_t e = graph->first_edge[node];
    const int32_t end = graph->first_edge[node + 1];
    const int n_sources = tensor_count_sources(tensor);
    for (int32_t k = 0; k < n_sources; ++k) {
        if (!tensor->src[k] || tensor->src[k] == tensor) continue;
        const struct sched_edge *edge = &graph->edges[e];
        if (e == end || edge->slot != k || cache->tensors[edge->value] != tensor->src[k])
            return false;
        ++e;
    }
    return e == end;
}

// Whether a tensor is like the value, all but its sources; it stands for it from then on.
static inline bool same_value(const struct sched_cache *cache, const struct sched_graph *graph,
                              int32_t number, struct ggml_tensor *tensor) {
    if (!tensor || !same_tensor(&cache->values[number], tensor) ||
        !same_memory(graph, &graph->values[number], tensor) ||
        !same_root(cache, graph, number, tensor)) {
        return false;
    }
    cache->tensors[number] = tensor;
    return true;
}

// Leafs before nodes, so that every source is known by the time it is compared. Tensors that only
// nodes mention stand for themselves, and have been met as what nodes refer to.
static bool same_graph(const struct sched_cache *cache, const struct sched_graph *graph,
                       const struct ggml_cgraph *source) {
    bool same = true;
    for (int32_t i = 0; i < graph->n_leafs && same; ++i) {
        same = same_value(cache, graph, graph->n_nodes + i, source->leafs[i]);
    }
    for (int32_t i = 0; i < graph->n_nodes && same; ++i) {
        same = same_value(cache, graph, i, source->nodes[i]) &&
               same_sources(cache, graph, i, source->nodes[i]);
    }
    for (int32_t i = graph->n_nodes + graph->n_leafs; i < graph->n_values && same; ++i) {
        same = same_value(cache, graph, i, cache->tensors[i]);
    }
    return same;
}

// What else uses nodes of a part of another graph may change without the part.
static bool is_part(const struct ggml_cgraph *graph) {
    return graph->size == 0;
}

// Cheap conditions first.
bool sched_cache_matches(const struct sched_cache *cache, const struct sched_setup *setup,
                         const struct sched_graph *graph, const struct ggml_cgraph *source) {
    return cache->valid && setup->n_pins == 0 && !source->error && !is_part(source) &&
           source->n_nodes == graph->n_nodes && source->n_leafs == graph->n_leafs &&
           same_graph(cache, graph, source);
}

// --- remembering

// Copies what same_tensor() compares, as the tensors themselves may be freed before the next graph.
static void remember_tensor(const struct ggml_tensor *tensor, struct sched_cached_value *out) {
    memcpy(out->bytes, compared_bytes(tensor), sizeof(out->bytes));
    out->view_offs = tensor->view_offs;
    out->type = tensor->type;
}

// Whether the graph is as large as the one before. It may still differ: sched_cache_matches() finds
// out.
static bool looks_alike(const struct sched_graph *graph, struct sched_cache *cache) {
    const bool alike = cache->n_nodes == graph->n_nodes && cache->n_leafs == graph->n_leafs &&
                       cache->n_edges == graph->n_edges;
    cache->n_nodes = graph->n_nodes;
    cache->n_leafs = graph->n_leafs;
    cache->n_edges = graph->n_edges;
    return alike;
}

// Graphs out of order are left out: comparing has to meet a tensor before what refers to it.
static bool can_recur(const struct sched_cache *cache, const struct sched_setup *setup,
                      const struct sched_graph *graph, const struct ggml_cgraph *source) {
    return !cache->off && setup->pipeline_depth == 1 && setup->n_pins == 0 && !is_part(source) &&
           graph->in_order;
}

void sched_cache_remember(const struct sched_setup *setup, const struct sched_graph *graph,
                          const struct ggml_cgraph *source, struct sched_cache *cache) {
    const int32_t n = graph->n_values;
    cache->valid = looks_alike(graph, cache) && can_recur(cache, setup, graph, source) &&
                   ARRAY_GROW(cache, values, n) && ARRAY_GROW(cache, tensors, n);
    for (int32_t i = 0; i < n && cache->valid; ++i) {
        cache->tensors[i] = graph->values[i].tensor;
        remember_tensor(graph->values[i].tensor, &cache->values[i]);
    }
}
