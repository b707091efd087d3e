// SPDX-License-Identifier: MIT
// The scheduler: the results of the passes for the last graph, the buffers, and what is running.
//
// Passes, each a file of pass/ with const inputs and one result: graph.c (numbering) ->
// placement.c, ../cost (placement) -> partition.c (splits) -> copies.c (tensors that are copied to)
// -> subgraphs.c (a graph per split) -> liveness.c -> plan.c (offsets) -> bind.c (addresses).
// split.c and allocate.c call them, run.c runs what they made; its results are struct sched_runs.
// A graph that repeats the last one (cache.c) skips most of them.
#ifndef GGML_SCHED_SCHED_H
#define GGML_SCHED_SCHED_H

#include "ggml-alloc.h"
#include "sched/pass/bind.h"
#include "sched/pass/cache.h"
#include "sched/run.h"

enum sched_state { SCHED_RESET, SCHED_SPLIT, SCHED_ALLOCATED };

struct ggml_backend_sched {
    struct sched_setup setup;
    enum sched_state state;
    struct sched_callbacks callbacks;
    ggml_backend_sched_realloc_callback realloc_callback;
    void *realloc_callback_data;

    // The last graph, and the results of the passes for it.
    struct ggml_cgraph *source; // only compared after the call that it was passed to
    uint64_t source_uid;        // 0: there is none
    bool rules_changed;         // since it was placed: what decides where nodes run
    bool bound;                 // its tensors have the places that the last allocation gave them
    struct sched_graph graph;
    struct sched_placement placement;
    struct sched_partition partition;
    struct sched_copies copies;
    struct sched_subgraphs subgraphs;
    struct sched_liveness live;
    struct sched_plan plan;
    struct sched_cache cache;

    // Buffers.
    struct sched_buffer_plan buffer_plan; // of setup.pools
    bool by_buffer_plan;                  // the last graph has its places by that
    uint64_t placement_hash; // of the last graph that was allocated while realloc_callback was set
    int32_t placement_nodes; // of that graph

    struct sched_runs runs;
};

// Where the value is computed or lies.
static inline int32_t sched_stream_of(const struct ggml_backend_sched *sched, int32_t value) {
    return sched->placement.placed[value].backend;
}

// Whether the stream has not been freed; otherwise records that.
bool sched_stream_is_live(const struct ggml_backend_sched *sched, int32_t backend,
                          const char *function);
// Index of the stream, the first of several equal ones, or -1.
int32_t sched_find_stream(const struct ggml_backend_sched *sched, ggml_backend_t backend);
// The same, -1 after telling why, also if one is NULL.
int32_t sched_known_stream(ggml_backend_sched_t sched, ggml_backend_t backend,
                           const char *function);
// Number of a tensor of the last graph, or -1; copies have numbers from n_values.
int32_t sched_find_value(struct ggml_backend_sched *sched, const struct ggml_tensor *tensor);

// Numbers, places and partitions a graph. On failure, which a message tells, it is as it was.
bool sched_split(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// The same, for a graph that may have been split before.
bool sched_split_fresh(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// Makes the last graph what it was before it was split: own sources and order, no memory. It must
// be alive.
void sched_restore(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// Whether it is the graph that was split last, unchanged.
bool sched_is_last_graph(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph);
// The last graph, from here on, is this one.
void sched_set_last_graph(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);

// Gives the split graph memory; false with a message.
bool sched_allocate(struct ggml_backend_sched *sched);
// Splits and allocates a graph that repeats the last one. false without effect if it does not.
bool sched_cache_replay(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// Plans it and makes the buffers large enough, or only tells their sizes; false with a message.
bool sched_reserve_buffers(struct ggml_backend_sched *sched);
bool sched_measure(struct ggml_backend_sched *sched, size_t *out_sizes);

// Logs the splits if GGML_SCHED_DEBUG says so.
void sched_log(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph);

#endif
