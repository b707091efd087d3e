// SPDX-License-Identifier: MIT
// The cache around the passes: it remembers the last graph, so that one that repeats it gets the
// results of the passes for that. Without it (GGML_SCHED_CACHE=0) each graph goes through the
// passes, which give it the same splits, streams, buffers and addresses.
#ifndef GGML_SCHED_CACHE_H
#define GGML_SCHED_CACHE_H

#include <stddef.h>

#include "sched/pass/graph.h"

// Bytes of a tensor from its extents to its flags: strides, operation and parameters lie between
// them without padding, so that one comparison is enough for all.
enum {
    SCHED_CACHED_BYTES =
        offsetof(struct ggml_tensor, flags) + sizeof(int32_t) - offsetof(struct ggml_tensor, ne),
};
_Static_assert(SCHED_CACHED_BYTES == GGML_MAX_DIMS * (sizeof(int64_t) + sizeof(size_t)) +
                                         sizeof(enum ggml_op) + GGML_MAX_OP_PARAMS +
                                         sizeof(int32_t),
               "a tensor has padding between its extents and its flags");

// What passes read of a tensor, except its sources and its name.
struct sched_cached_value {
    size_t view_offs;
    int32_t type;
    char bytes[SCHED_CACHED_BYTES];
};

// Zero-initialised remembers nothing yet.
struct sched_cache {
    bool off;                          // nothing is remembered
    bool valid;                        // `values` describe the last graph
    struct sched_cached_value *values; // of its nodes and leafs
    struct ggml_tensor **tensors;      // of the graph that is compared, by value
    int32_t values_capacity, tensors_capacity;
    int32_t n_nodes, n_leafs, n_edges; // of the last graph
};

// Reads the environment.
void sched_cache_begin(struct sched_cache *cache);
void sched_cache_free(struct sched_cache *cache);
// Whether the graph repeats the last one in everything but the addresses of its tensors:
// `cache->tensors` then has those, by value.
bool sched_cache_matches(const struct sched_cache *cache, const struct sched_setup *setup,
                         const struct sched_graph *graph, const struct ggml_cgraph *source);
// Remembers the graph that was allocated, if another can repeat it and it looks like the one
// before: graphs that never recur need not be copied.
void sched_cache_remember(const struct sched_setup *setup, const struct sched_graph *graph,
                          const struct ggml_cgraph *source, struct sched_cache *cache);

#endif
