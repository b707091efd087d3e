// SPDX-License-Identifier: MIT
// What a scheduler remembers of earlier graphs, to be done with the next one sooner: the last
// graph, which replay.c compares a new one with; the plan that the buffers were made for; and per
// pool how quick planning succeeded. Without all of it (GGML_SCHED_CACHE=0) graphs get the same
// splits and results, and buffers that are as close to the lower bound.
#ifndef GGML_SCHED_CACHE_H
#define GGML_SCHED_CACHE_H

#include "alloc/liveness.h"
#include "alloc/memory_quick.h"
#include "ggml.h"

struct ggml_backend_sched;

struct sched_cached_value {
    int64_t ne[GGML_MAX_DIMS];
    size_t nb[GGML_MAX_DIMS];
    size_t view_offs;
    int32_t op_params[GGML_MAX_OP_PARAMS / sizeof(int32_t)];
    int32_t type, op, flags;
};

// What a graph must look like for sched_replay(). It is written down when a graph looks like the
// one before, and less eagerly after that turned out to be for nothing.
struct sched_graph_cache {
    bool repeatable; // `values` and the scheduler's arrays describe the last graph
    bool had_hit;    // some graph was replayed by them
    struct sched_cached_value *values;
    int32_t values_capacity;
    int32_t n_nodes, n_leafs, n_edges, n_splits, n_copies; // of the last graph
    size_t bytes;
    int streak;  // graphs in a row that looked like this
    int backoff; // how many of them it takes
};

// The plan that the buffers were made for: it is used again for graphs whose tensors live as long
// and are no larger, when their own plan would need larger buffers.
struct sched_saved_plan {
    bool valid;
    int32_t n_entries;
    struct live_place *places;
    struct live_last *last;
    int32_t places_capacity, last_capacity;
};

// What quick planning was good with for the last graph of a pool.
struct sched_pool_hint {
    int32_t policy;
    size_t capacity;
};

// Zero-initialised remembers nothing yet.
struct sched_caches {
    bool off; // nothing is remembered
    struct sched_graph_cache graph;
    struct sched_saved_plan plan;
    struct sched_pool_hint *hints; // by pool of the allocator
};

// Room for that many pools; reads the environment. false when memory runs out.
bool sched_caches_begin(struct sched_caches *caches, int n_pools);
void sched_caches_free(struct sched_caches *caches);

// The shortest path: splits and allocates a graph that repeats the last one in everything but the
// addresses of its tensors. false without effect if it does not.
bool sched_replay(struct ggml_backend_sched *sched, struct ggml_cgraph *graph);
// Remembers the graph that was allocated for it, if that may be worth it.
void sched_remember(struct ggml_backend_sched *sched);

// Gives entries the places of the plan that the buffers were made for, if that holds for the last
// graph too.
bool sched_use_saved_plan(struct ggml_backend_sched *sched);
// Remembers the plan that the buffers were made for. It need not succeed: without it the next graph
// is only planned anew.
void sched_save_plan(struct ggml_backend_sched *sched);

// Remembers what was good for the pool.
void sched_caches_learn(struct sched_caches *caches, int pool, const struct memory_quick *quick);

#endif
