// SPDX-License-Identifier: MIT
// Allocates a partitioned graph: calls the passes from liveness to addresses, and makes the
// buffers.
#include "base/status.h"
#include "sched/sched.h"

// --- telling the application

// FNV-1a over the streams of all values: equal graphs that are placed alike have the same.
static uint64_t hash_placement(const struct ggml_backend_sched *sched) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int32_t i = 0; i < sched->graph.n_nodes + sched->graph.n_leafs; ++i) {
        hash = (hash ^ (uint32_t)sched_stream_of(sched, i)) * 0x100000001b3u;
    }
    return hash;
}

// Tells the application that the buffers are about to be replaced, and what changed since the last
// graph.
static void tell_realloc(struct ggml_backend_sched *sched) {
    if (!sched->realloc_callback) return;
    const uint64_t hash = hash_placement(sched);
    const bool resized = sched->graph.n_nodes != sched->placement_nodes;
    const bool moved = sched->placement_nodes > 0 && !resized && hash != sched->placement_hash;
    sched->placement_hash = hash;
    sched->placement_nodes = sched->graph.n_nodes;
    if (sched->plan.fits) return;
    sched_wait_all(&sched->setup, &sched->runs);
    sched->realloc_callback(sched, sched->source, moved, resized, sched->realloc_callback_data);
}

// --- the whole graph

// Live ranges, and the plan; with `for_use` any that fits into the buffers.
static bool plan(struct ggml_backend_sched *sched, bool for_use) {
    const struct sched_buffer_plan *known = for_use ? &sched->buffer_plan : NULL;
    return sched_find_liveness(&sched->setup, &sched->graph, &sched->placement, &sched->partition,
                               &sched->subgraphs, known, &sched->live) &&
           sched_plan_make(&sched->setup, &sched->live, known, &sched->plan);
}

// Makes the buffers as large as planned, and remembers the plan. Queued runs may use the memory
// that other plans gave them.
static bool adopt_plan(struct ggml_backend_sched *sched) {
    sched_wait_all(&sched->setup, &sched->runs);
    sched->buffer_plan.valid = false;
    if (!sched_plan_provide(&sched->setup, &sched->plan)) return false;
    sched_buffer_plan_set(&sched->live, &sched->plan, &sched->buffer_plan);
    return true;
}

// Whether a stream that queues may still read memory of one that doesn't: the inputs of another
// plan could lie there, which the application sets next.
static bool is_used_late(const struct ggml_backend_sched *sched) {
    const struct sched_setup *setup = &sched->setup;
    bool used = false;
    for (int b = 0; b < setup->n_streams * setup->n_streams && !used; ++b) {
        const int owner = b / setup->n_streams, user = b % setup->n_streams;
        used = !setup->streams[owner].queues && setup->streams[user].queues &&
               sched_users(setup, &sched->runs, owner)[user];
    }
    return used;
}

// Live ranges, plan, buffers, addresses. Stops at the first that fails. In a pipeline the runs that
// are under way have copies where another plan may have anything else, and otherwise what is read
// late where it has inputs.
static bool allocate(struct ggml_backend_sched *sched) {
    const bool pipelined = sched->setup.pipeline_depth > 1;
    if (!plan(sched, true)) return false;
    tell_realloc(sched);
    const bool adopts = !sched->live.held && (pipelined || !sched->plan.fits);
    if (adopts && !adopt_plan(sched)) return false;
    const bool moves = !sched->live.held || !sched->by_buffer_plan;
    if (moves && is_used_late(sched)) sched_wait_all(&sched->setup, &sched->runs);
    sched->by_buffer_plan = sched->live.held || adopts;
    return sched_bind(&sched->setup, &sched->graph, &sched->live, &sched->plan, &sched->partition,
                      &sched->copies);
}

// Marks the graph as bound first, so that a restore after a failure clears what was bound.
bool sched_allocate(struct ggml_backend_sched *sched) {
    const unsigned long failures_before = ggml_fail_count();
    sched->bound = true;
    if (allocate(sched)) {
        sched_cache_remember(&sched->setup, &sched->graph, sched->source, &sched->cache);
        return true;
    }
    if (ggml_fail_count() == failures_before) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: the graph could not be allocated",
                  sched->setup.function);
    }
    return false;
}

bool sched_reserve_buffers(struct ggml_backend_sched *sched) {
    return plan(sched, false) && adopt_plan(sched);
}

// Allocates nothing. Streams that share a pool each get all of it.
bool sched_measure(struct ggml_backend_sched *sched, size_t *out_sizes) {
    const int n = sched->setup.n_streams;
    memset(out_sizes, 0, (size_t)n * sizeof(out_sizes[0]));
    if (!plan(sched, false)) return false;
    for (int b = 0; b < n; ++b) {
        out_sizes[b] = memory_chunks_total(&sched->plan.pools[sched->setup.streams[b].pool]);
    }
    return true;
}

// --- a graph that repeats the last one

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

// Its tensors take the places of their predecessors. Placement, partition and plan are those of the
// last graph.
bool sched_cache_replay(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    if (!sched_cache_matches(&sched->cache, &sched->setup, &sched->graph, graph)) return false;
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
