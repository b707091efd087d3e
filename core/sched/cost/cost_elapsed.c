// SPDX-License-Identifier: MIT
// Predicted time from start to end: list scheduling of the splits in the order of run.c, where each
// stream has a time from which it is free.
#include "base/mem.h"
#include "sched/cost/cost.h"

// Times in seconds since the graph was begun.
struct timeline {
    const struct sched_setup *setup;
    const struct sched_graph *graph;
    const struct sched_placement *placement;
    const struct sched_partition *partition;
    const struct sched_subgraphs *subgraphs;
    int slot;     // of the run
    double host;  // when the calling thread goes on
    double *free; // [stream]: when its queued work is done
};

// The calling thread does nothing until then.
static void wait_for(struct timeline *line, double moment) {
    line->host = MAX(line->host, moment);
}

// With events one stream waits for another without the host.
static bool has_events(const struct timeline *line, int32_t b) {
    return line->setup->streams[b].events[line->slot] != NULL;
}

// Later work of b comes after what `other` has queued.
static void order_after(struct timeline *line, int32_t b, int32_t other) {
    if (!has_events(line, other)) wait_for(line, line->free[other]);
    line->free[b] = MAX(line->free[b], line->free[other]);
}

// As make_copy() in run.c: inputs and copies through the host keep the calling thread, direct
// copies occupy both streams.
static void copy_input(struct timeline *line, int32_t number) {
    const struct sched_copy *copy = &line->partition->copies[number];
    const struct sched_value *value = &line->graph->values[copy->value];
    const int32_t from = line->placement->placed[copy->value].backend, to = copy->backend;
    const struct cost_link link = cost_link_between(line->setup, from, to);
    const double seconds =
        link.seconds + link.seconds_per_byte * (double)ggml_nbytes(value->tensor);
    if ((value->traits & SCHED_INPUT) || !link.direct) {
        wait_for(line, MAX(line->free[from], line->free[to]));
        line->host += seconds;
        return;
    }
    if (!has_events(line, to)) wait_for(line, line->free[to]);
    line->free[from] = MAX(line->free[from], line->host) + seconds;
    line->free[to] = MAX(line->free[to], line->free[from]);
}

// As run_split() in run.c: waits, copies, then all nodes of the split, one after the other.
static void run_split(struct timeline *line, const struct sched_split *split) {
    const int32_t b = split->backend;
    for (int32_t i = 0; i < split->n_waits; ++i) {
        order_after(line, b, line->partition->waits[split->first_wait + i]);
    }
    for (int32_t i = 0; i < split->n_inputs; ++i) {
        copy_input(line, line->partition->inputs[split->first_input + i]);
    }
    double seconds = 0;
    for (int32_t i = split->i_start; i < split->i_end; ++i) {
        const struct sched_value *value = &line->graph->values[sched_node_at(line->subgraphs, i)];
        if (value->traits & (SCHED_VIEW_OP | SCHED_NO_OP | SCHED_SKIPPED)) continue;
        seconds += cost_node_seconds(&line->setup->figures[b], value->tensor);
    }
    line->free[b] = MAX(line->free[b], line->host) + seconds;
    if (!line->setup->streams[b].queues) wait_for(line, line->free[b]);
}

bool cost_elapsed(const struct sched_setup *setup, const struct sched_graph *graph,
                  const struct sched_placement *placement, const struct sched_partition *partition,
                  const struct sched_subgraphs *subgraphs, int slot, double *out_seconds) {
    struct timeline line = {setup, graph, placement, partition, subgraphs, slot, 0, NULL};
    *out_seconds = 0;
    line.free = ggml_mem_calloc((size_t)setup->n_streams, sizeof(line.free[0]));
    if (!line.free) return false;
    for (int32_t s = 0; s < partition->n_splits; ++s) {
        run_split(&line, &partition->splits[s]);
    }
    for (int32_t b = 0; b < setup->n_streams; ++b) {
        wait_for(&line, line.free[b]);
    }
    *out_seconds = line.host;
    ggml_mem_free(line.free);
    return true;
}
