// SPDX-License-Identifier: MIT
// ggml_gallocr: memory for a graph without a scheduler. It calls the passes of the scheduler that
// number a graph, find its live ranges, plan offsets and set addresses; instead of placement the
// caller says which buffer each tensor lies in, and nothing is partitioned or copied.
#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "sched/pass/bind.h"
#include "sched/pass/cache.h"

struct ggml_gallocr {
    struct sched_setup setup; // its streams are the buffers
    // The last graph that was looked at, and the results of the passes for it.
    struct sched_graph graph;
    struct sched_placement placement;
    struct sched_liveness live;
    struct sched_plan plan;
    struct sched_cache cache;
    // The plan that was reserved.
    struct sched_buffer_plan reserved;
    int32_t n_nodes, n_leafs; // of its graph
    int *ids;                 // buffers of nodes, then of leafs, where there are several
    int32_t ids_capacity;
};

// What a graph allocator has none of.
static const struct sched_partition no_partition;
static const struct sched_subgraphs no_subgraphs;
static const struct sched_copies no_copies;

// --- creation and end

// What could be made is freed by ggml_gallocr_free(), which takes an allocator that is half made.
ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs) {
    struct ggml_gallocr *galloc = NULL;
    bool given = bufts && n_bufs > 0;
    for (int i = 0; given && i < n_bufs; ++i) {
        if (!bufts[i])
            given = false;
        else if (!device_require_buft(bufts[i], "ggml_gallocr_new_n"))
            return NULL;
    }
    if (!given) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_gallocr_new_n: needs at least one buffer type and "
                  "none that is NULL");
        return NULL;
    }
    galloc = ggml_mem_calloc(1, sizeof(*galloc));
    if (!galloc) goto fail;
    galloc->setup.function = __func__;
    galloc->setup.n_streams = n_bufs;
    galloc->setup.pipeline_depth = 1;
    galloc->setup.takes_any = true;
    galloc->setup.streams = ggml_mem_calloc((size_t)n_bufs, sizeof(galloc->setup.streams[0]));
    if (!galloc->setup.streams) goto fail;
    for (int i = 0; i < n_bufs; ++i) {
        galloc->setup.streams[i].buft = bufts[i];
    }
    if (sched_pools_make(&galloc->setup) && sched_plan_begin(&galloc->setup, &galloc->plan) &&
        sched_graph_begin(&galloc->setup, 0, &galloc->graph)) {
        return galloc;
    }
fail:
    ggml_gallocr_free(galloc);
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_gallocr_new_n: no memory for an allocator");
    return NULL;
}

ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft) {
    return ggml_gallocr_new_n(&buft, 1);
}

void ggml_gallocr_free(ggml_gallocr_t galloc) {
    THREAD_GUARD_END(galloc);
    if (!galloc) return;
    sched_cache_free(&galloc->cache);
    sched_buffer_plan_free(&galloc->reserved);
    sched_plan_free(&galloc->setup, &galloc->plan);
    sched_liveness_free(&galloc->live);
    sched_placement_free(&galloc->placement);
    sched_graph_free(&galloc->graph);
    sched_pools_free(&galloc->setup);
    ggml_mem_free(galloc->setup.streams);
    ggml_mem_free(galloc->ids);
    ggml_mem_free(galloc);
}

// --- the passes

// Places n values from `first` on in the buffers with these ids; NULL: in the only one. false with
// a message if an id is not that of a buffer.
static bool place_listed(struct ggml_gallocr *galloc, int32_t first, int32_t n, const int *ids) {
    for (int32_t i = 0; i < n; ++i) {
        const int id = ids ? ids[i] : 0;
        if (id < 0 || id >= galloc->setup.n_streams) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE, "graph allocator: there is no buffer %d of %d", id,
                      galloc->setup.n_streams);
            return false;
        }
        sched_assign(&galloc->placement, first + i, id, SCHED_REASON_PINNED);
    }
    return true;
}

// Tensors that only nodes mention lie where the first of these does: the last that is met from the
// end.
static void place_mentioned(struct ggml_gallocr *galloc) {
    const struct sched_graph *graph = &galloc->graph;
    struct sched_placement *placement = &galloc->placement;
    const int32_t n_listed = graph->n_nodes + graph->n_leafs;
    for (int32_t i = n_listed; i < graph->n_values; ++i) {
        sched_assign(placement, i, 0, SCHED_REASON_CONSUMER);
    }
    for (int32_t i = graph->n_nodes - 1; i >= 0 && n_listed < graph->n_values; --i) {
        const int32_t id = placement->placed[i].backend;
        const int32_t root = graph->values[i].root;
        if (root >= n_listed) sched_assign(placement, root, id, SCHED_REASON_CONSUMER);
        for (int32_t e = graph->first_edge[i]; e < graph->first_edge[i + 1]; ++e) {
            const int32_t entry = graph->edges[e].entry;
            if (entry >= n_listed) sched_assign(placement, entry, id, SCHED_REASON_CONSUMER);
        }
    }
}

// Numbers the graph and finds its live ranges, by the known plan if that holds. false after the
// error was set.
static bool find_ranges(struct ggml_gallocr *galloc, const struct ggml_cgraph *source,
                        const int *node_ids, const int *leaf_ids,
                        const struct sched_buffer_plan *known) {
    struct sched_graph *graph = &galloc->graph;
    struct sched_placement *placement = &galloc->placement;
    galloc->cache.valid = false;
    if (!sched_graph_make(&galloc->setup, source, graph) ||
        !ARRAY_GROW(placement, placed, graph->n_values) ||
        !place_listed(galloc, 0, graph->n_nodes, node_ids) ||
        !place_listed(galloc, graph->n_nodes, graph->n_leafs, leaf_ids)) {
        return false;
    }
    place_mentioned(galloc);
    return sched_find_liveness(&galloc->setup, graph, placement, &no_partition, &no_subgraphs,
                               known, &galloc->live);
}

// Makes the buffers as large as planned, and keeps the plan. After a failure there is none.
static bool provide(struct ggml_gallocr *galloc) {
    galloc->reserved.valid = false;
    if (!sched_plan_provide(&galloc->setup, &galloc->plan)) return false;
    sched_buffer_plan_set(&galloc->live, &galloc->plan, &galloc->reserved);
    galloc->n_nodes = galloc->graph.n_nodes;
    galloc->n_leafs = galloc->graph.n_leafs;
    return galloc->reserved.valid;
}

// Remembers the buffers of the graph that was looked at.
static bool keep_ids(struct ggml_gallocr *galloc) {
    const int32_t n = galloc->graph.n_nodes + galloc->graph.n_leafs;
    if (galloc->setup.n_streams == 1) return true;
    if (!ARRAY_GROW(galloc, ids, n)) return false;
    for (int32_t i = 0; i < n; ++i) {
        galloc->ids[i] = galloc->placement.placed[i].backend;
    }
    return true;
}

// Gives the tensors of the graph that was looked at their places.
static bool bind(struct ggml_gallocr *galloc, struct ggml_cgraph *graph) {
    const unsigned long failures_before = ggml_fail_count();
    if (sched_bind(&galloc->setup, &galloc->graph, &galloc->live, &galloc->plan, &no_partition,
                   &no_copies)) {
        if (!galloc->cache.valid) {
            sched_cache_remember(&galloc->setup, &galloc->graph, graph, &galloc->cache);
        }
        return true;
    }
    galloc->cache.valid = false;
    if (ggml_fail_count() == failures_before) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: the graph could not be allocated",
                  galloc->setup.function);
    }
    return false;
}

// Always false: with several buffers only the caller knows in which of them tensors of another
// graph lie.
static bool refuse_structure(const struct ggml_gallocr *galloc) {
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "%s: the graph is not the one that was reserved; call ggml_gallocr_reserve_n first",
              galloc->setup.function);
    return false;
}

// --- the public functions

// false with a message if an argument is NULL.
static bool enter(ggml_gallocr_t galloc, const struct ggml_cgraph *graph, const char *function) {
    if (galloc && graph) {
        galloc->setup.function = function;
        return true;
    }
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the allocator or the graph is NULL", function);
    return false;
}

// The plan that there is stays if the graph can't be planned.
bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                            const int *node_buffer_ids, const int *leaf_buffer_ids) {
    THREAD_GUARD(galloc, false);
    return enter(galloc, graph, __func__) &&
           find_ranges(galloc, graph, node_buffer_ids, leaf_buffer_ids, NULL) &&
           sched_plan_make(&galloc->setup, &galloc->live, NULL, &galloc->plan) &&
           keep_ids(galloc) && provide(galloc);
}

bool ggml_gallocr_reserve(ggml_gallocr_t galloc, struct ggml_cgraph *graph) {
    THREAD_GUARD(galloc, false);
    return ggml_gallocr_reserve_n(galloc, graph, NULL, NULL);
}

// Nothing is allocated, and the plan that was reserved stays.
void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                                 const int *node_buffer_ids, const int *leaf_buffer_ids,
                                 size_t *sizes) {
    THREAD_GUARD_VOID(galloc);
    if (!enter(galloc, graph, __func__) || !sizes) return;
    const int n_buffers = galloc->setup.n_streams;
    memset(sizes, 0, (size_t)n_buffers * sizeof(sizes[0]));
    if (!find_ranges(galloc, graph, node_buffer_ids, leaf_buffer_ids, NULL) ||
        !sched_plan_make(&galloc->setup, &galloc->live, NULL, &galloc->plan)) {
        return;
    }
    for (int i = 0; i < n_buffers; ++i) {
        sizes[i] = memory_chunks_total(&galloc->plan.pools[galloc->setup.streams[i].pool]);
    }
}

// Binds a graph to the plan that was reserved; where that does not hold to a new one, if there is
// only one buffer.
bool ggml_gallocr_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph *graph) {
    THREAD_GUARD(galloc, false);
    if (!enter(galloc, graph, __func__)) return false;
    if (graph->error) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph is in error: %s", __func__,
                  graph->error);
        return false;
    }
    if (sched_cache_matches(&galloc->cache, &galloc->setup, &galloc->graph, graph)) {
        sched_graph_renew(&galloc->graph, galloc->cache.tensors);
        return bind(galloc, graph);
    }
    const struct sched_buffer_plan *reserved = &galloc->reserved;
    const bool one_buffer = galloc->setup.n_streams == 1;
    const bool as_many =
        reserved->valid && galloc->n_nodes == graph->n_nodes && galloc->n_leafs == graph->n_leafs;
    if (!as_many && !one_buffer) return refuse_structure(galloc);
    const int *ids = one_buffer ? NULL : galloc->ids;
    if (!find_ranges(galloc, graph, ids, ids ? ids + galloc->n_nodes : NULL, reserved))
        return false;
    if (!galloc->live.held && !one_buffer) return refuse_structure(galloc);
    return sched_plan_make(&galloc->setup, &galloc->live, reserved, &galloc->plan) &&
           (galloc->live.held || provide(galloc)) && bind(galloc, graph);
}

size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t galloc, int buffer_id) {
    THREAD_GUARD(galloc, 0);
    if (galloc && buffer_id >= 0 && buffer_id < galloc->setup.n_streams)
        return sched_pools_size(&galloc->setup, buffer_id);
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "ggml_gallocr_get_buffer_size: there is no buffer %d",
              buffer_id);
    return 0;
}
