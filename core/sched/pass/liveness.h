// SPDX-License-Identifier: MIT
// The pass before memory is planned: the live ranges of values and of copies.
#ifndef GGML_SCHED_LIVENESS_H
#define GGML_SCHED_LIVENESS_H

#include "alloc/offsets.h"
#include "sched/pass/subgraphs.h"

// Entries are the values and, behind them, the copies.
struct sched_liveness {
    int32_t n_entries;
    struct live_range *ranges; // by entry
    struct live_last *last;    // by entry
    struct live_edge *edges;   // those of the graph, to copies where these are read, if any are
    int32_t *numbers;          // entries that need memory: early ones, copies, nodes by step
    int32_t n_numbers;
    int32_t n_early;        // of them have to be there from the start
    int32_t *inplace_steps; // steps of nodes that may take over the memory of a source
    bool held;              // they are those of the known plan, which can be used as it is
    int32_t ranges_capacity, last_capacity, edges_capacity, numbers_capacity;
    int32_t inplace_steps_capacity;
};

// The plan that buffers were made for. It holds for graphs whose tensors live as long and are no
// larger, which keeps smaller graphs than the one that was reserved in the buffers as they are.
struct sched_buffer_plan {
    bool valid;
    int32_t n_entries;
    struct live_range *ranges;
    struct live_last *last;
    struct live_offset *offsets;
    int32_t ranges_capacity, last_capacity, offsets_capacity;
};

// Live ranges and takeovers, in O(nodes + edges + copies); false after the error was set. With
// `known`, which may be NULL, takeovers are the known ones if that plan then holds.
bool sched_find_liveness(const struct sched_setup *setup, const struct sched_graph *graph,
                         const struct sched_placement *placement,
                         const struct sched_partition *partition,
                         const struct sched_subgraphs *subgraphs,
                         const struct sched_buffer_plan *known, struct sched_liveness *out);
void sched_liveness_free(struct sched_liveness *live);

#endif
