// SPDX-License-Identifier: MIT
// Makes a report of placement, splits, copies and memory.
#include "sched/report/report.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "sched/cost/cost.h"
#include "sched/sched.h"

// A report that is made, and what it is made of.
struct collector {
    struct ggml_backend_sched *sched;
    struct ggml_sched_report *report;
    const char **devices; // names by stream, in the report
};

// Why the copy is there, for a person. The order matters: an expert's weights are weights too.
static const char *copy_reason(const struct ggml_backend_sched *sched, int32_t copy) {
    const struct sched_value *value = &sched->graph.values[sched->partition.copies[copy].value];
    if (sched_is_expert_copy(&sched->graph, &sched->partition.copies[copy])) {
        return "a weight that the device can't read there; only the experts that are used";
    }
    if (value->traits & SCHED_WEIGHT) return "a weight that the device can't read there";
    if (value->traits & SCHED_INPUT) return "an input of the graph";
    if (sched->partition.copies[copy].value >= sched->graph.n_nodes)
        return "data that the device can't read there";
    return "a result that the device can't read there";
}

// False: no memory. sizes: bytes by stream; what streams with one pool share counts for the
// first.
static bool add_streams(struct collector *c, const size_t *sizes) {
    struct ggml_backend_sched *sched = c->sched;
    const size_t n = (size_t)sched->setup.n_streams;
    struct arena *arena = &c->report->arena;
    c->devices = arena_alloc(arena, n * sizeof(c->devices[0]));
    c->report->streams = arena_alloc(arena, n * sizeof(c->report->streams[0]));
    if (!c->devices || !c->report->streams) return false;
    c->report->n_streams = n;
    for (size_t b = 0; b < n; ++b) {
        struct ggml_sched_stream_info *info = &c->report->streams[b];
        const struct sched_stream *stream = &sched->setup.streams[b];
        c->devices[b] = info->device = arena_strdup(arena, ggml_backend_dev_name(stream->device));
        info->memory = arena_strdup(arena, ggml_backend_buft_name(stream->buft));
        if (!info->device || !info->memory) return false;
        info->bytes = (size_t)stream->pool_stream == b ? sizes[b] : 0;
        ggml_backend_dev_memory(stream->device, &info->free_bytes, NULL);
    }
    return true;
}

// One part of the graph and what is copied for it. False: no memory.
static bool add_split(struct collector *c, int32_t number) {
    const struct ggml_backend_sched *sched = c->sched;
    const struct sched_split *split = &sched->partition.splits[number];
    struct ggml_sched_split_info *info = &c->report->splits[number];
    const size_t n = (size_t)split->n_inputs;
    struct ggml_sched_copy_info *copies =
        arena_alloc(&c->report->arena, (n + 1) * sizeof(copies[0]));
    if (!copies) return false;
    *info = (struct ggml_sched_split_info){
        .device = c->devices[split->backend],
        .stream = split->backend,
        .first_node = split->i_start,
        .n_nodes = split->i_end - split->i_start,
        .n_copies = n,
        .copies = copies,
    };
    c->report->streams[split->backend].n_splits++;
    for (size_t i = 0; i < n; ++i) {
        const int32_t copy = sched->partition.inputs[(size_t)split->first_input + i];
        const int32_t original = sched->partition.copies[copy].value;
        const struct sched_value *value = &sched->graph.values[original];
        copies[i].tensor = arena_strdup(&c->report->arena, value->tensor->name);
        if (!copies[i].tensor) return false;
        copies[i].from = c->devices[sched->placement.placed[original].backend];
        copies[i].reason = copy_reason(sched, copy);
        copies[i].bytes = ggml_nbytes(value->tensor);
        info->copied_bytes += copies[i].bytes;
    }
    return true;
}

// Views and nodes without data belong to the split that they lie in, wherever that computes.
static bool add_node(struct collector *c, int32_t node, int32_t split) {
    const struct sched_value *value = &c->sched->graph.values[node];
    const struct sched_placed *placed = &c->sched->placement.placed[node];
    struct ggml_sched_node_info *info = &c->report->nodes[node];
    const bool computes = !(value->traits & (SCHED_VIEW_OP | SCHED_NO_OP));
    const int32_t stream = computes ? placed->backend : c->sched->partition.splits[split].backend;
    *info = (struct ggml_sched_node_info){
        .name = arena_strdup(&c->report->arena, value->tensor->name),
        .op = ggml_op_desc(value->tensor),
        .device = c->devices[stream],
        .stream = stream,
        .split = split,
        .reason = computes ? sched_reason_text(placed->reason) : "moves no data",
    };
    c->report->streams[stream].n_nodes += computes;
    return info->name != NULL;
}

// Nodes come after the streams and splits whose names and counts they use. False: no memory.
static bool collect(struct collector *c, const size_t *sizes) {
    struct ggml_backend_sched *sched = c->sched;
    struct ggml_sched_report *report = c->report;
    if (!add_streams(c, sizes)) return false;
    const size_t n_splits = (size_t)sched->partition.n_splits,
                 n_nodes = (size_t)sched->graph.n_nodes;
    report->splits = arena_alloc(&report->arena, (n_splits + 1) * sizeof(report->splits[0]));
    report->nodes = arena_alloc(&report->arena, (n_nodes + 1) * sizeof(report->nodes[0]));
    if (!report->splits || !report->nodes) return false;
    report->n_splits = n_splits;
    report->n_nodes = n_nodes;
    for (int32_t s = 0; s < sched->partition.n_splits; ++s) {
        if (!add_split(c, s)) return false;
        for (int32_t i = sched->partition.splits[s].i_start; i < sched->partition.splits[s].i_end;
             ++i) {
            if (!add_node(c, i, s)) return false;
        }
    }
    return true;
}

// Of the graph that is split now. The caller frees it; NULL after telling why.
static ggml_sched_report_t make_report(ggml_backend_sched_t sched, const size_t *sizes) {
    struct collector c = {.sched = sched, .report = ggml_mem_calloc(1, sizeof(*c.report))};
    if (c.report && collect(&c, sizes) &&
        (!sched->setup.figures ||
         cost_elapsed(&sched->setup, &sched->graph, &sched->placement, &sched->partition,
                      &sched->subgraphs, sched->runs.slot, &c.report->elapsed))) {
        c.report->seconds = sched->setup.figures ? sched->placement.seconds : 0;
        return c.report;
    }
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_sched_report_new: no memory for a report");
    ggml_sched_report_free(c.report);
    return NULL;
}

// Names are copied into the report: it outlives graph, scheduler and streams.
ggml_sched_report_t ggml_sched_report_new(ggml_backend_sched_t sched, struct ggml_cgraph *graph) {
    THREAD_GUARD(sched, NULL);
    if (!sched || (!graph && sched->state == SCHED_RESET)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %s", __func__,
                  sched ? "there is no graph: give one, or split one first"
                        : "the scheduler is NULL");
        return NULL;
    }
    sched->setup.function = __func__;
    // Bytes by stream: planned ones of a given graph, or those of the buffers.
    size_t *sizes = ggml_mem_calloc((size_t)sched->setup.n_streams, sizeof(sizes[0]));
    if (!sizes) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a report", __func__);
        return NULL;
    }
    ggml_sched_report_t report = NULL;
    // A graph that is given is split, measured and put back as it was; without one the last
    // graph is reported, with the memory that it really has.
    if (graph) {
        if (sched_split_fresh(sched, graph)) {
            if (sched_measure(sched, sizes)) report = make_report(sched, sizes);
            sched_restore(sched, graph);
        }
        ggml_backend_sched_reset(sched);
    } else {
        for (int b = 0; b < sched->setup.n_streams; ++b) {
            sizes[b] = ggml_backend_sched_get_buffer_size(sched, sched->setup.streams[b].backend);
        }
        report = make_report(sched, sizes);
    }
    ggml_mem_free(sizes);
    return report;
}

// Everything but the texts is in the arena.
void ggml_sched_report_free(ggml_sched_report_t report) {
    if (!report) return;
    arena_free(&report->arena);
    ggml_mem_free(report->text);
    ggml_mem_free(report->json);
    ggml_mem_free(report);
}

// --- questions: 0 or NULL for no report, or where there is nothing

// Both are predicted from figures, and 0 without them.
double ggml_sched_report_seconds(ggml_sched_report_t report) {
    return report ? report->seconds : 0;
}

double ggml_sched_report_elapsed(ggml_sched_report_t report) {
    return report ? report->elapsed : 0;
}

// Elements are counted from 0, in the order of the graph and of the scheduler's list of streams.
size_t ggml_sched_report_split_count(ggml_sched_report_t report) {
    return report ? report->n_splits : 0;
}

size_t ggml_sched_report_node_count(ggml_sched_report_t report) {
    return report ? report->n_nodes : 0;
}

size_t ggml_sched_report_stream_count(ggml_sched_report_t report) {
    return report ? report->n_streams : 0;
}

const struct ggml_sched_split_info *ggml_sched_report_split(ggml_sched_report_t report, size_t i) {
    return report && i < report->n_splits ? &report->splits[i] : NULL;
}

const struct ggml_sched_node_info *ggml_sched_report_node(ggml_sched_report_t report, size_t i) {
    return report && i < report->n_nodes ? &report->nodes[i] : NULL;
}

const struct ggml_sched_stream_info *ggml_sched_report_stream(ggml_sched_report_t report,
                                                              size_t i) {
    return report && i < report->n_streams ? &report->streams[i] : NULL;
}
