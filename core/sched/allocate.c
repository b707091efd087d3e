// SPDX-License-Identifier: MIT
// Allocates a partitioned graph: calls the passes from liveness to addresses, and makes the
// buffers.
#include "base/array.h"
#include "base/status.h"
#include "sched/sched.h"

// --- pipeline copies

// Adds a pipeline copy as a leaf. *io_same becomes false if it is not in the memory that the plan
// has for it.
static bool add_slot(const struct sched_setup *setup, struct ggml_tensor *tensor, int32_t backend,
                     bool *io_same, struct sched_slots *slots) {
    const int n = slots->leafs.n_leafs;
    if (!array_grow(&slots->leafs.leafs, &slots->leafs_capacity, (int64_t)n + 1,
                    sizeof(slots->leafs.leafs[0])) ||
        !array_grow(&slots->streams, &slots->streams_capacity, (int64_t)n + 1,
                    sizeof(slots->streams[0]))) {
        return false;
    }
    *io_same = *io_same && n < slots->n_planned &&
               setup->streams[slots->streams[n]].pool == setup->streams[backend].pool;
    slots->leafs.leafs[n] = tensor;
    slots->streams[n] = backend;
    slots->leafs.n_leafs++;
    return true;
}

// All copies of all slots as one graph of leafs: the graph allocator gives each memory of its own.
// *out_same: whether the plan that there is was made for as many, in the same memory.
static bool collect_slots(struct ggml_backend_sched *sched, bool *out_same) {
    struct sched_slots *slots = &sched->slots;
    slots->leafs.n_leafs = 0;
    *out_same = true;
    for (int32_t i = 0; i < sched->partition.n_copies; ++i) {
        for (int32_t slot = 0; slot < sched->setup.pipeline_depth; ++slot) {
            if (!add_slot(&sched->setup, sched_copy_in_slot(&sched->copies, i, slot),
                          sched->partition.copies[i].backend, out_same, slots)) {
                return false;
            }
        }
    }
    *out_same = *out_same && slots->leafs.n_leafs == slots->n_planned;
    return true;
}

// Takes the places of pipeline copies back, after a failure.
static void clear_slots(const struct sched_slots *slots) {
    for (int i = 0; i < slots->leafs.n_leafs; ++i) {
        slots->leafs.leafs[i]->buffer = NULL;
        slots->leafs.leafs[i]->data = NULL;
    }
}

// Plans and makes the buffers of pipeline copies; false with a message.
static bool reserve_slots(struct sched_slots *slots) {
    slots->n_planned = -1;
    if (!ggml_gallocr_reserve_n(slots->galloc, &slots->leafs, NULL, slots->streams)) return false;
    slots->n_planned = slots->leafs.n_leafs;
    return true;
}

// Binds the pipeline copies to the plan that there is, else makes one when the streams are idle.
static bool allocate_slots(struct ggml_backend_sched *sched) {
    struct sched_slots *slots = &sched->slots;
    bool same;
    if (!slots->galloc) return true;
    if (!collect_slots(sched, &same)) return false;
    if (same) {
        const enum gallocr_result result =
            gallocr_use_plan(slots->galloc, &slots->leafs, sched->setup.function);
        if (result != GALLOCR_DOES_NOT_FIT) return result == GALLOCR_BOUND;
    }
    sched_wait_all(&sched->setup, &sched->runs);
    return reserve_slots(slots) && ggml_gallocr_alloc_graph(slots->galloc, &slots->leafs);
}

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

// Makes the buffers as large as planned, and remembers the plan.
static bool grow_buffers(struct ggml_backend_sched *sched) {
    sched_wait_all(&sched->setup, &sched->runs);
    sched->buffer_plan.valid = false;
    if (!sched_plan_provide(&sched->setup, &sched->plan)) return false;
    sched_buffer_plan_set(&sched->live, &sched->plan, &sched->buffer_plan);
    return true;
}

// Pipeline copies, live ranges, plan, buffers, addresses. Stops at the first that fails.
static bool allocate(struct ggml_backend_sched *sched) {
    if (!allocate_slots(sched) || !plan(sched, true)) return false;
    tell_realloc(sched);
    if (!sched->plan.fits && !grow_buffers(sched)) return false;
    return sched_bind(&sched->setup, &sched->graph, &sched->live, &sched->plan, &sched->partition,
                      &sched->copies);
}

// Marks the graph as bound first, so that a restore after a failure clears what was bound.
bool sched_allocate(struct ggml_backend_sched *sched) {
    const unsigned long failures_before = ggml_fail_count();
    sched->bound = true;
    sched->slots.leafs.n_leafs = 0;
    if (allocate(sched)) {
        sched_cache_remember(&sched->setup, &sched->graph, sched->source, &sched->cache);
        return true;
    }
    clear_slots(&sched->slots);
    if (ggml_fail_count() == failures_before) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: the graph could not be allocated",
                  sched->setup.function);
    }
    return false;
}

// Waits first: buffers that are too small are freed, which queued work may still use.
bool sched_reserve_buffers(struct ggml_backend_sched *sched) {
    bool same;
    sched_wait_all(&sched->setup, &sched->runs);
    if (sched->slots.galloc && !(collect_slots(sched, &same) && reserve_slots(&sched->slots)))
        return false;
    return plan(sched, false) && grow_buffers(sched);
}

// Adds the bytes of each stream's pool; streams that share a pool each get all of it.
static void add_planned(const struct ggml_backend_sched *sched, size_t *sizes) {
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        const size_t bytes = memory_chunks_total(&sched->plan.pools[sched->setup.streams[b].pool]);
        sizes[b] = sizes[b] > SIZE_MAX - bytes ? SIZE_MAX : sizes[b] + bytes;
    }
}

// Allocates nothing. The sizes of pipeline copies are those of their own allocator.
bool sched_measure(struct ggml_backend_sched *sched, size_t *out_sizes) {
    const unsigned long failures_before = ggml_fail_count();
    struct sched_slots *slots = &sched->slots;
    bool same;
    memset(out_sizes, 0, (size_t)sched->setup.n_streams * sizeof(out_sizes[0]));
    if (slots->galloc) {
        slots->n_planned = -1; // the plan is for these streams from here on
        if (!collect_slots(sched, &same)) return false;
        ggml_gallocr_reserve_n_size(slots->galloc, &slots->leafs, NULL, slots->streams, out_sizes);
    }
    if (!plan(sched, false)) return false;
    add_planned(sched, out_sizes);
    return ggml_fail_count() == failures_before;
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
