// SPDX-License-Identifier: MIT
// Runs the splits of the allocated graph: waits, copies, compute.
#include <stdio.h>

#include "base/mem.h"
#include "base/status.h"
#include "device/stream.h"
#include "sched/report/profile.h"
#include "sched/sched.h"

struct sched_run {
    struct ggml_backend_sched *sched;
    struct ggml_cgraph *graph;
    struct sched_experts experts;
    int32_t *last_in_pool; // by pool: stream of the last split that ran there, or -1
};

// Event of the stream for the copy that is used now; NULL: the host has to wait.
static ggml_backend_event_t event_of(const struct ggml_backend_sched *sched, int32_t backend) {
    return sched->setup.streams[backend].events[sched->cur_copy];
}

// Blocks until the split that the stream ran last for this copy is done.
static void wait_for_copy(struct ggml_backend_sched *sched, int32_t backend) {
    ggml_backend_event_t event = event_of(sched, backend);
    if (event) {
        sched_wait_event(sched, backend, event);
    } else {
        sched_wait(sched, backend);
    }
}

// Makes `backend` wait for what `other` was given in this run.
static void order_after(struct ggml_backend_sched *sched, int32_t backend, int32_t other) {
    ggml_backend_event_t event = event_of(sched, other);
    if (event) {
        ggml_backend_event_wait(sched->setup.streams[backend].backend, event);
    } else {
        sched_wait(sched, other);
    }
}

// Results that are read in place, and memory that another stream's split used before.
static void wait_for_others(struct sched_run *run, const struct sched_split *split) {
    struct ggml_backend_sched *sched = run->sched;
    const int32_t backend = split->backend;
    for (int32_t i = 0; i < split->n_waits; ++i) {
        order_after(sched, backend, sched->partition.waits[split->first_wait + i]);
    }
    int32_t *last = &run->last_in_pool[sched->setup.streams[backend].pool_stream];
    if (*last >= 0 && *last != backend) order_after(sched, backend, *last);
    *last = backend;
}

// Copies through the host: waits for the source, and for what still reads the copy.
static void copy_blocking(struct ggml_backend_sched *sched, int32_t from, int32_t to,
                          const struct ggml_tensor *src, struct ggml_tensor *dst) {
    sched_wait(sched, from);
    wait_for_copy(sched, to);
    ggml_backend_tensor_copy(src, dst);
}

// Whether the application copied a weight by itself, perhaps only what the split reads of it.
static bool application_copied(struct sched_run *run, int32_t copy, int32_t split) {
    struct ggml_backend_sched *sched = run->sched;
    if (!sched->copy_callback ||
        !sched_is_host_weight(&sched->graph, &sched->partition.copies[copy]))
        return false;
    const struct sched_value *value = &sched->graph.values[sched->partition.copies[copy].value];
    struct ggml_cgraph part = ggml_graph_view(run->graph, sched->partition.splits[split].i_start,
                                              sched->partition.splits[split].i_end);
    part.uid = sched_frame(sched)->parts.graphs[split].uid;
    sched_wait(sched, sched->placement.placed[sched->partition.copies[copy].value].backend);
    return sched->copy_callback(sched->setup.streams[sched->partition.copies[copy].backend].backend,
                                value->tensor, sched_copy_tensor(&sched->copies, copy), &part,
                                sched->copy_callback_data);
}

// Makes one copy, in the cheapest way that both streams offer. False after the error was set, be
// it by a plugin: the count of failures tells.
static bool make_copy(struct sched_run *run, int32_t copy, int32_t split) {
    struct ggml_backend_sched *sched = run->sched;
    const struct sched_copy *input = &sched->partition.copies[copy];
    const struct sched_value *value = &sched->graph.values[input->value];
    const int32_t from = sched->placement.placed[input->value].backend;
    const int32_t to = input->backend;
    ggml_backend_t source = sched->setup.streams[from].backend;
    ggml_backend_t target = sched->setup.streams[to].backend;
    struct ggml_tensor *dst = sched_copy_tensor(&sched->copies, copy);
    const unsigned long told = ggml_fail_count();
    if (ggml_nbytes(value->tensor) == 0) return true;
    if (value->traits & SCHED_INPUT) { // the user may overwrite it as soon as the call returns
        copy_blocking(sched, from, to, value->tensor, dst);
        return ggml_fail_count() == told;
    }
    if (event_of(sched, to)) {
        ggml_backend_event_wait(target, event_of(sched, to));
    } else {
        sched_wait(sched, to);
    }
    sched->queues[to].busy = true;
    if (application_copied(run, copy, split)) return ggml_fail_count() == told;
    if (sched_is_expert_copy(sched, input)) return sched_copy_experts(sched, copy, &run->experts);
    if (!stream_copy_async(source, target, value->tensor, dst)) {
        copy_blocking(sched, from, to, value->tensor, dst);
    }
    return ggml_fail_count() == told;
}

// make_copy(), with a slice in the profile if one is recorded.
static bool copy_input(struct sched_run *run, int32_t copy, int32_t split) {
    const uint64_t begin = sched_profile_clock(run->sched);
    const bool done = make_copy(run, copy, split);
    if (begin) sched_profile_copy(run->sched, copy, begin);
    return done;
}

// `first` is the number of its first node in the graph that was split.
static enum ggml_status compute_part(struct ggml_backend_sched *sched, int32_t backend,
                                     const struct ggml_graph *graph, int first) {
    const uint64_t begin = sched_profile_clock(sched);
    if (begin) sched_profile_enter(sched, backend, graph, first);
    const enum ggml_status status = stream_graph_compute(
        "ggml_backend_graph_compute_async", sched->setup.streams[backend].backend, graph);
    if (begin) sched_profile_leave(sched, backend, begin);
    return status;
}

// Computes nodes up to and including the first whose data the callback wants; *io_first moves
// behind it.
static enum ggml_status compute_until_wanted(struct ggml_backend_sched *sched,
                                             const struct sched_split *split,
                                             const struct ggml_graph *graph, int *io_first) {
    int end = *io_first;
    bool wanted = false;
    while (end < graph->n_nodes && !wanted) {
        wanted = sched->callback(graph->nodes[end++], true, sched->callback_data);
    }
    const struct ggml_graph part = {
        .size = sizeof(part),
        .n_nodes = end - *io_first,
        .nodes = graph->nodes + *io_first,
        .use_counts = graph->use_counts + *io_first,
    };
    const enum ggml_status status =
        compute_part(sched, split->backend, &part, split->i_start + *io_first);
    *io_first = end;
    if (status != GGML_STATUS_SUCCESS) return status;
    ggml_backend_synchronize(sched->setup.streams[split->backend].backend);
    if (!wanted || sched->callback(graph->nodes[end - 1], false, sched->callback_data))
        return status;
    ggml_fail(GGML_HOST_ABORTED, "%s: the callback stopped it after '%s'", sched->setup.function,
              graph->nodes[end - 1]->name);
    return GGML_STATUS_ABORTED;
}

// With the application's callback the split is computed in parts, each up to a node that it
// wants to see.
static enum ggml_status compute(struct ggml_backend_sched *sched, const struct sched_split *split,
                                const struct ggml_graph *graph) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    sched->queues[split->backend].busy = true;
    if (!sched->callback) return compute_part(sched, split->backend, graph, split->i_start);
    for (int i = 0; i < graph->n_nodes && status == GGML_STATUS_SUCCESS;) {
        status = compute_until_wanted(sched, split, graph, &i);
    }
    return status;
}

// Says which split it was that failed, keeping the status.
static enum ggml_status failed(const struct ggml_backend_sched *sched, int32_t number,
                               enum ggml_status status) {
    char message[512];
    const enum ggml_host_status reason = ggml_last_status();
    snprintf(message, sizeof(message), "%s", ggml_last_error());
    ggml_fail(reason == GGML_HOST_OK ? GGML_HOST_FAILED : reason, "%s: split %d of %d on %s: %s",
              sched->setup.function, (int)number + 1, (int)sched->partition.n_splits,
              sched_stream_label(&sched->setup, sched->partition.splits[number].backend), message);
    return status;
}

// Copies what the split reads from elsewhere: with a callback for weights those come last.
static bool copy_inputs(struct sched_run *run, int32_t number) {
    struct ggml_backend_sched *sched = run->sched;
    const struct sched_split *split = &sched->partition.splits[number];
    const int32_t *inputs = sched->partition.inputs + split->first_input;
    const bool weights_last = sched->copy_callback != NULL;
    for (int32_t i = 0; i < split->n_inputs; ++i) {
        if (weights_last &&
            sched_is_host_weight(&sched->graph, &sched->partition.copies[inputs[i]]))
            continue;
        if (!copy_input(run, inputs[i], number)) return false;
    }
    for (int32_t i = 0; weights_last && i < split->n_inputs; ++i) {
        if (!sched_is_host_weight(&sched->graph, &sched->partition.copies[inputs[i]])) continue;
        if (!copy_input(run, inputs[i], number)) return false;
    }
    return true;
}

// Waits, copies, computes and records the event by which later splits know that this one is
// done.
static enum ggml_status run_split(struct sched_run *run, int32_t number) {
    struct ggml_backend_sched *sched = run->sched;
    const struct sched_split *split = &sched->partition.splits[number];
    const unsigned long told = ggml_fail_count();
    wait_for_others(run, split);
    if (!copy_inputs(run, number) || ggml_fail_count() != told)
        return failed(sched, number, GGML_STATUS_FAILED);
    const enum ggml_status status =
        compute(sched, split, &sched_frame(sched)->parts.graphs[number]);
    if (status == GGML_STATUS_ABORTED) return status;
    if (status != GGML_STATUS_SUCCESS) return failed(sched, number, status);
    if (event_of(sched, split->backend)) {
        ggml_backend_event_record(event_of(sched, split->backend),
                                  sched->setup.streams[split->backend].backend);
    }
    return GGML_STATUS_SUCCESS;
}

// After a failure nothing is left running; the reason stays the one that was recorded first.
static void settle(struct ggml_backend_sched *sched) {
    char message[512];
    const enum ggml_host_status reason = ggml_last_status();
    const unsigned long told = ggml_fail_count();
    snprintf(message, sizeof(message), "%s", ggml_last_error());
    sched_wait_all(sched);
    if (ggml_fail_count() != told) ggml_fail(reason, "%s", message);
}

enum ggml_status sched_run(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct sched_run run = {.sched = sched, .graph = graph, .experts = {.ids = -1}};
    const size_t n = (size_t)sched->setup.n_streams;
    enum ggml_status status = GGML_STATUS_SUCCESS;
    run.last_in_pool = ggml_mem_alloc(n * sizeof(run.last_in_pool[0]));
    if (!run.last_in_pool) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to run the graph", sched->setup.function);
        return GGML_STATUS_ALLOC_FAILED;
    }
    sched_frame(sched)->run = ++sched->run;
    if (sched->profile) sched_profile_collect(sched);
    for (size_t b = 0; b < n; ++b) {
        sched->queues[b].busy = true;
        run.last_in_pool[b] = -1;
    }
    for (int32_t i = 0; i < sched->partition.n_splits && status == GGML_STATUS_SUCCESS; ++i) {
        status = run_split(&run, i);
    }
    if (status != GGML_STATUS_SUCCESS) settle(sched);
    ggml_mem_free(run.last_in_pool);
    ggml_mem_free(run.experts.used);
    return status;
}
