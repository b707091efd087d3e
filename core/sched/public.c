// SPDX-License-Identifier: MIT
// The public functions, and which of them may follow which: reserve, reset, split, allocate,
// compute.
#include "base/status.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "sched/sched.h"

// Checks what all functions with a graph are given, and that no device has gone. False after the
// error was set.
static bool enter(ggml_backend_sched_t sched, const struct ggml_cgraph *graph,
                  const char *function) {
    if (!device_require_arg(sched, function, "scheduler") ||
        !device_require_arg(graph, function, "graph"))
        return false;
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        if (!sched_stream_is_live(sched, b, function)) return false;
    }
    sched->setup.function = function;
    return true;
}

// A graph that was split last can be split again; one that was split before that has sources and
// addresses which are no longer valid.
static bool make_fresh(ggml_backend_sched_t sched, struct ggml_cgraph *graph) {
    if (sched_is_last_graph(sched, graph)) sched_restore(sched, graph);
    if (graph->uid == 0) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "%s: the graph was split before, and another one after it; build a new one",
              sched->setup.function);
    return false;
}

// Used by calls that split a graph on their own: reserving, measuring, reports.
bool sched_split_fresh(ggml_backend_sched_t sched, struct ggml_cgraph *graph) {
    return make_fresh(sched, graph) && sched_split(sched, graph);
}

// Pins hold until the next reset, as the tensors may be freed then.
static void forget_pins(ggml_backend_sched_t sched) {
    sched->rules_changed = true;
    sched->setup.n_pins = 0;
    tensor_index_clear(&sched->setup.pin_ids, 1);
}

// The results of the passes stay: the next graph may repeat this one.
void ggml_backend_sched_reset(ggml_backend_sched_t sched) {
    THREAD_GUARD_VOID(sched);
    if (!device_require_arg(sched, __func__, "scheduler")) return;
    if (sched->setup.n_pins > 0) forget_pins(sched);
    sched->state = SCHED_RESET;
}

void ggml_backend_sched_synchronize(ggml_backend_sched_t sched) {
    THREAD_GUARD_VOID(sched);
    if (!device_require_arg(sched, __func__, "scheduler")) return;
    sched_wait_all(&sched->setup, &sched->runs);
    // One graph after the other then always uses the same copy, which devices may have prepared
    // for.
    if (sched->state != SCHED_ALLOCATED) sched->runs.next_slot = 0;
}

// Splits and plans, and puts the graph back as it was.
void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched, struct ggml_cgraph *measure_graph,
                                     size_t *sizes) {
    THREAD_GUARD_VOID(sched);
    if (!enter(sched, measure_graph, __func__)) return;
    if (!sizes) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: there is no array for the sizes", __func__);
        return;
    }
    memset(sizes, 0, (size_t)sched->setup.n_streams * sizeof(sizes[0]));
    if (sched_split_fresh(sched, measure_graph)) {
        sched_measure(sched, sizes);
        sched_restore(sched, measure_graph);
    }
    ggml_backend_sched_reset(sched);
}

// The same, and makes the buffers as large as planned.
bool ggml_backend_sched_reserve(ggml_backend_sched_t sched, struct ggml_cgraph *measure_graph) {
    THREAD_GUARD(sched, false);
    if (!enter(sched, measure_graph, __func__)) return false;
    ggml_backend_sched_synchronize(sched);
    bool done = sched_split_fresh(sched, measure_graph);
    if (done) {
        done = sched_reserve_buffers(sched);
        sched_restore(sched, measure_graph);
    }
    ggml_backend_sched_reset(sched);
    return done;
}

// Has no result to return: a failure is recorded in the graph, which later calls then refuse.
void ggml_backend_sched_split_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph) {
    THREAD_GUARD_VOID(sched);
    if (!enter(sched, graph, __func__)) return;
    sched->state = SCHED_SPLIT;
    if (sched_split_fresh(sched, graph)) return;
    sched->state = SCHED_RESET;
    if (!graph->error) graph->error = "the scheduler could not split the graph";
}

// Three ways, the shortest first: unchanged, like the last one, and all passes.
bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph) {
    THREAD_GUARD(sched, false);
    if (!enter(sched, graph, __func__)) return false;
    if (sched->state == SCHED_ALLOCATED) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: a graph is allocated; call ggml_backend_sched_reset first", __func__);
        return false;
    }
    if (sched_is_last_graph(sched, graph) && sched->bound && !sched->rules_changed &&
        sched->setup.n_pins == 0 && sched->setup.pipeline_depth == 1) {
        sched->state = SCHED_ALLOCATED;
        return true;
    }
    if (!make_fresh(sched, graph)) return false;
    if (sched_cache_replay(sched, graph)) {
        sched->state = SCHED_ALLOCATED;
        return true;
    }
    sched->runs.slot = sched->runs.next_slot;
    sched->runs.next_slot = (sched->runs.next_slot + 1) % sched->setup.pipeline_depth;
    if (!sched_split(sched, graph)) return false;
    if (!sched_allocate(sched)) {
        sched_restore(sched, graph);
        return false;
    }
    sched->state = SCHED_ALLOCATED;
    return true;
}

// Allocates the graph unless that was done.
enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched,
                                                        struct ggml_cgraph *graph) {
    THREAD_GUARD(sched, GGML_STATUS_FAILED);
    if (!enter(sched, graph, __func__)) return GGML_STATUS_FAILED;
    if (sched->state != SCHED_ALLOCATED && !ggml_backend_sched_alloc_graph(sched, graph)) {
        return GGML_STATUS_ALLOC_FAILED;
    }
    sched->setup.function = __func__;
    if (!sched_is_last_graph(sched, graph)) {
        ggml_fail(
            GGML_HOST_INVALID_ARGUMENT,
            "%s: this is not the graph that is allocated; call ggml_backend_sched_reset first",
            __func__);
        return GGML_STATUS_FAILED;
    }
    const struct sched_work work = {
        .setup = &sched->setup,
        .graph = &sched->graph,
        .placement = &sched->placement,
        .partition = &sched->partition,
        .copies = &sched->copies,
        .parts = sched_frame(&sched->runs)->parts.graphs,
        .source = graph,
        .callbacks = &sched->callbacks,
    };
    return sched_run(&work, &sched->runs);
}

// What fails while waiting is known by the count of failures only.
enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched,
                                                  struct ggml_cgraph *graph) {
    THREAD_GUARD(sched, GGML_STATUS_FAILED);
    enum ggml_status status = ggml_backend_sched_graph_compute_async(sched, graph);
    if (status != GGML_STATUS_SUCCESS) return status;
    const unsigned long failures_before = ggml_fail_count();
    ggml_backend_sched_synchronize(sched);
    return ggml_fail_count() == failures_before ? status : GGML_STATUS_FAILED;
}
