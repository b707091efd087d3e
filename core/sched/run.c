// SPDX-License-Identifier: MIT
// Runs the splits of the allocated graph: waits, copies, compute.
#include <stdio.h>

#include "base/mem.h"
#include "base/status.h"
#include "device/stream.h"
#include "sched/record/record.h"
#include "sched/run.h"

// One run.
struct runner {
    const struct sched_work *work;
    struct sched_runs *runs;
    struct sched_experts experts;
};

// Event of the stream for the copies that are used now; NULL: the host has to wait.
static ggml_backend_event_t event_of(const struct runner *runner, int32_t backend) {
    return runner->work->setup->streams[backend].events[runner->runs->slot];
}

// Blocks until the split that the stream ran last for this copy is done.
static void wait_for_copy(struct runner *runner, int32_t backend) {
    const struct sched_work *work = runner->work;
    ggml_backend_event_t event = event_of(runner, backend);
    if (event) {
        sched_wait_event(runner->runs, backend, event);
    } else {
        sched_wait(work->setup, runner->runs, backend);
    }
}

// Marks what was queued on the stream so far.
static void record(struct runner *runner, int32_t backend) {
    ggml_backend_event_t event = event_of(runner, backend);
    if (!event) return;
    ggml_backend_event_record(event, runner->work->setup->streams[backend].backend);
    runner->runs->queues[backend].recorded = event;
}

// Makes `backend` wait for what `other` was given up to its last split, be it in an earlier run.
static void order_after(struct runner *runner, int32_t backend, int32_t other) {
    const struct sched_work *work = runner->work;
    ggml_backend_event_t recorded = runner->runs->queues[other].recorded;
    if (!event_of(runner, other)) {
        sched_wait(work->setup, runner->runs, other);
    } else if (recorded) {
        ggml_backend_event_wait(work->setup->streams[backend].backend, recorded);
    }
}

// Makes `backend` wait for all that uses the memory of `owner`.
static void order_after_users(struct runner *runner, int32_t backend, int32_t owner) {
    const struct sched_work *work = runner->work;
    const bool *users = sched_users(work->setup, runner->runs, owner);
    for (int32_t other = 0; other < work->setup->n_streams; ++other) {
        if (users[other] && other != backend) order_after(runner, backend, other);
    }
}

// The split comes after all that uses the memory that it uses in place, and that of its stream:
// whoever comes after the split there then comes after those too.
static void wait_for_others(struct runner *runner, const struct sched_split *split) {
    const struct sched_work *work = runner->work;
    const int32_t backend = split->backend;
    for (int32_t i = 0; i < split->n_waits; ++i) {
        const int32_t owner = work->partition->waits[split->first_wait + i];
        order_after(runner, backend, owner);
        order_after_users(runner, backend, owner);
    }
    order_after_users(runner, backend, backend);
    bool *users = sched_users(work->setup, runner->runs, backend);
    memset(users, 0, (size_t)work->setup->n_streams * sizeof(users[0]));
}

// The split is about to be given to its stream, which uses that memory from then on.
static void note_uses(struct runner *runner, const struct sched_split *split) {
    const struct sched_work *work = runner->work;
    sched_users(work->setup, runner->runs, split->backend)[split->backend] = true;
    for (int32_t i = 0; i < split->n_waits; ++i) {
        const int32_t other = work->partition->waits[split->first_wait + i];
        sched_users(work->setup, runner->runs, other)[split->backend] = true;
    }
}

// Copies through the host: waits for what computes or uses the source, and for what still reads the
// copy.
static void copy_blocking(struct runner *runner, int32_t value, int32_t from, int32_t to,
                          struct ggml_tensor *dst) {
    const struct sched_work *work = runner->work;
    const struct ggml_tensor *src = work->graph->values[value].tensor;
    sched_wait(work->setup, runner->runs, from);
    sched_wait_for_users(work->setup, runner->runs, sched_owner(work, value));
    wait_for_copy(runner, to);
    ggml_backend_tensor_copy(src, dst);
}

// Whether the application copied a weight by itself, perhaps only what the split reads of it.
static bool application_copied(struct runner *runner, int32_t copy, int32_t split) {
    const struct sched_work *work = runner->work;
    if (!work->callbacks->copy) return false;
    const struct sched_value *value = &work->graph->values[work->partition->copies[copy].value];
    struct ggml_cgraph part = ggml_graph_view(work->source, work->partition->splits[split].i_start,
                                              work->partition->splits[split].i_end);
    part.uid = work->parts[split].uid;
    sched_wait(work->setup, runner->runs,
               work->placement->placed[work->partition->copies[copy].value].backend);
    return work->callbacks->copy(
        work->setup->streams[work->partition->copies[copy].backend].backend, value->tensor,
        sched_copy_tensor(work->copies, copy), &part, work->callbacks->copy_data);
}

// Copies a weight in host memory by the application, or only the experts that are used. False if
// neither is possible; *out_good: nothing failed. Weights that the graph writes to are like
// results.
static bool copy_weight(struct runner *runner, int32_t copy, int32_t split, bool *out_good) {
    const struct sched_work *work = runner->work;
    const struct sched_copy *input = &work->partition->copies[copy];
    const int32_t owner = sched_owner(work, input->value);
    const bool changes =
        work->partition->written[work->graph->values[input->value].root] != SCHED_NEVER;
    const unsigned long failures_before = ggml_fail_count();
    if (changes) sched_wait_for_users(work->setup, runner->runs, owner);
    bool copied = application_copied(runner, copy, split);
    if (!copied && sched_is_expert_copy(work->graph, input)) {
        sched_copy_experts(work, runner->runs, copy, &runner->experts);
        copied = true;
    }
    if (changes && copied) sched_users(work->setup, runner->runs, owner)[input->backend] = true;
    *out_good = ggml_fail_count() == failures_before;
    return copied;
}

// Makes one copy, in the cheapest way that both streams offer. False after the error was set, be
// it by a plugin: the count of failures tells.
static bool make_copy(struct runner *runner, int32_t copy, int32_t split) {
    const struct sched_work *work = runner->work;
    const struct sched_copy *input = &work->partition->copies[copy];
    const struct sched_value *value = &work->graph->values[input->value];
    const int32_t from = work->placement->placed[input->value].backend;
    const int32_t to = input->backend;
    ggml_backend_t source = work->setup->streams[from].backend;
    ggml_backend_t target = work->setup->streams[to].backend;
    struct ggml_tensor *dst = sched_copy_tensor(work->copies, copy);
    const unsigned long failures_before = ggml_fail_count();
    if (ggml_nbytes(value->tensor) == 0) return true;
    if (value->traits & SCHED_INPUT) { // the user may overwrite it as soon as the call returns
        copy_blocking(runner, input->value, from, to, dst);
        return ggml_fail_count() == failures_before;
    }
    // What may still read the copy: in a pipeline only an earlier run, which is over.
    if (!event_of(runner, to)) sched_wait(work->setup, runner->runs, to);
    runner->runs->queues[from].busy = runner->runs->queues[to].busy = true;
    if (sched_is_host_weight(work->graph, input)) {
        bool copied;
        if (copy_weight(runner, copy, split, &copied) || !copied) return copied;
    }
    order_after_users(runner, from, sched_owner(work, input->value));
    if (stream_copy_async(source, target, value->tensor, dst)) {
        sched_users(work->setup, runner->runs, from)[from] = true;
        sched_users(work->setup, runner->runs, sched_owner(work, input->value))[from] = true;
        record(runner, from);
    } else {
        copy_blocking(runner, input->value, from, to, dst);
    }
    return ggml_fail_count() == failures_before;
}

// make_copy(), with a slice in the profile if one is recorded.
static bool copy_input(struct runner *runner, int32_t copy, int32_t split) {
    const uint64_t begin = sched_profile_clock(runner->runs);
    const bool done = make_copy(runner, copy, split);
    if (begin) sched_profile_copy(runner->runs->profile, runner->work, copy, begin);
    return done;
}

// `first` is the number of its first node in the graph that was split.
static enum ggml_status compute_part(struct runner *runner, int32_t backend,
                                     const struct ggml_graph *graph, int first) {
    ggml_backend_t stream = runner->work->setup->streams[backend].backend;
    struct ggml_sched_profile *profile = runner->runs->profile;
    const uint64_t begin = sched_profile_clock(runner->runs);
    if (begin) sched_profile_enter(profile, backend, stream, graph, first);
    const enum ggml_status status =
        stream_graph_compute("ggml_backend_graph_compute_async", stream, graph);
    if (begin) sched_profile_leave(profile, backend, stream, begin);
    return status;
}

// Computes nodes up to and including the first whose data the callback wants; *io_first moves
// behind it.
static enum ggml_status compute_until_wanted(struct runner *runner, const struct sched_split *split,
                                             const struct ggml_graph *graph, int *io_first) {
    const struct sched_work *work = runner->work;
    int end = *io_first;
    bool wanted = false;
    while (end < graph->n_nodes && !wanted) {
        wanted = work->callbacks->eval(graph->nodes[end++], true, work->callbacks->eval_data);
    }
    const struct ggml_graph part = {
        .size = sizeof(part),
        .n_nodes = end - *io_first,
        .nodes = graph->nodes + *io_first,
        .use_counts = graph->use_counts + *io_first,
    };
    const enum ggml_status status =
        compute_part(runner, split->backend, &part, split->i_start + *io_first);
    *io_first = end;
    if (status != GGML_STATUS_SUCCESS) return status;
    ggml_backend_synchronize(work->setup->streams[split->backend].backend);
    if (!wanted || work->callbacks->eval(graph->nodes[end - 1], false, work->callbacks->eval_data))
        return status;
    ggml_fail(GGML_HOST_ABORTED, "%s: the callback stopped it after '%s'", work->setup->function,
              graph->nodes[end - 1]->name);
    return GGML_STATUS_ABORTED;
}

// With the application's callback the split is computed in parts, each up to a node that it
// wants to see.
static enum ggml_status compute(struct runner *runner, const struct sched_split *split,
                                const struct ggml_graph *graph) {
    const struct sched_work *work = runner->work;
    enum ggml_status status = GGML_STATUS_SUCCESS;
    runner->runs->queues[split->backend].busy = true;
    if (!work->callbacks->eval) return compute_part(runner, split->backend, graph, split->i_start);
    for (int i = 0; i < graph->n_nodes && status == GGML_STATUS_SUCCESS;) {
        status = compute_until_wanted(runner, split, graph, &i);
    }
    return status;
}

// Says which split it was that failed, keeping the status.
static enum ggml_status failed(const struct runner *runner, int32_t number,
                               enum ggml_status status) {
    const struct sched_work *work = runner->work;
    char message[512];
    const enum ggml_host_status reason = ggml_last_status();
    snprintf(message, sizeof(message), "%s", ggml_last_error());
    ggml_fail(reason == GGML_HOST_OK ? GGML_HOST_FAILED : reason, "%s: split %d of %d on %s: %s",
              work->setup->function, (int)number + 1, (int)work->partition->n_splits,
              sched_stream_label(work->setup, work->partition->splits[number].backend), message);
    return status;
}

// Copies what the split reads from elsewhere: with a callback for weights those come last.
static bool copy_inputs(struct runner *runner, int32_t number) {
    const struct sched_work *work = runner->work;
    const struct sched_split *split = &work->partition->splits[number];
    const int n_passes = work->callbacks->copy ? 2 : 1;
    bool copied = true;
    for (int pass = 0; pass < n_passes; ++pass) {
        for (int32_t i = 0; i < split->n_inputs && copied; ++i) {
            const int32_t copy = work->partition->inputs[split->first_input + i];
            const bool last =
                n_passes == 2 && sched_is_host_weight(work->graph, &work->partition->copies[copy]);
            if (last == (pass == 1)) copied = copy_input(runner, copy, number);
        }
    }
    return copied;
}

// Waits, copies, computes and records the event by which later splits know that this one is
// done.
static enum ggml_status run_split(struct runner *runner, int32_t number) {
    const struct sched_work *work = runner->work;
    const struct sched_split *split = &work->partition->splits[number];
    const unsigned long failures_before = ggml_fail_count();
    wait_for_others(runner, split);
    if (!copy_inputs(runner, number) || ggml_fail_count() != failures_before)
        return failed(runner, number, GGML_STATUS_FAILED);
    note_uses(runner, split);
    const enum ggml_status status = compute(runner, split, &work->parts[number]);
    if (status == GGML_STATUS_ABORTED) return status;
    if (status != GGML_STATUS_SUCCESS) return failed(runner, number, status);
    record(runner, split->backend);
    return GGML_STATUS_SUCCESS;
}

// After a failure nothing is left running; the reason stays the one that was recorded first.
static void drain(struct runner *runner) {
    char message[512];
    const enum ggml_host_status reason = ggml_last_status();
    const unsigned long failures_before = ggml_fail_count();
    snprintf(message, sizeof(message), "%s", ggml_last_error());
    sched_wait_all(runner->work->setup, runner->runs);
    if (ggml_fail_count() != failures_before) ggml_fail(reason, "%s", message);
}

// Every stream counts as busy from here on: what the application gave it is not known.
enum ggml_status sched_run(const struct sched_work *work, struct sched_runs *runs) {
    struct runner runner = {.work = work, .runs = runs, .experts = {.ids = -1}};
    enum ggml_status status = GGML_STATUS_SUCCESS;
    if (runs->profile) sched_profile_collect(work->setup, runs);
    for (int b = 0; b < work->setup->n_streams; ++b) {
        runs->queues[b].busy = true;
    }
    sched_wait_for_frame(work->setup, runs);
    for (int32_t i = 0; i < work->partition->n_splits && status == GGML_STATUS_SUCCESS; ++i) {
        status = run_split(&runner, i);
    }
    sched_frame(runs)->run = ++runs->run; // not earlier: what is waited for meanwhile is not all
    if (status != GGML_STATUS_SUCCESS) drain(&runner);
    ggml_mem_free(runner.experts.used);
    return status;
}
