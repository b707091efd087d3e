// SPDX-License-Identifier: MIT
// The pass before memory is planned: live ranges, and which nodes reuse the memory of a source (in
// place). An entry is what may have memory: the values and, behind them, the tensors of copies.
// Step k computes the k-th node, and a live range is [first step, last step].
#ifndef GGML_SCHED_LIVENESS_H
#define GGML_SCHED_LIVENESS_H

#include "sched/pass/subgraphs.h"

// The last step of an entry that is never released.
enum { LIVE_FOREVER = INT32_MAX };

// The memory of an entry.
struct live_range {
    size_t size;   // padded
    int32_t pool;  // -1: a view, or its memory comes from elsewhere
    int32_t root;  // entry that owns the memory; itself unless it is a view
    int32_t first; // step from which it lives; -1: before all
    int32_t last;  // then it is released; for the last that takes it over this is later
    int32_t edge;  // the last use of the entry itself; -1: there is none, or something else is last
    int32_t from;  // entry whose memory it takes over, or -1
};

struct sched_liveness {
    int32_t n_entries;
    struct live_range *ranges; // by entry
    struct sched_edge *edges;  // those of the graph, to copies where these are read, if any are
    int32_t *numbers;          // entries that need memory: early ones, copies, nodes by step
    int32_t n_numbers;
    int32_t n_early; // of them have to be there from the start
    bool held;       // the known plan can be used as it is
    int32_t ranges_capacity, edges_capacity, numbers_capacity;
};

// Where an entry lies in the memory of its pool.
struct live_offset {
    size_t offset;
    int32_t chunk;
};

// The plan that buffers were made for. It holds for graphs whose tensors live as long and are no
// larger, which keeps smaller graphs than the one that was reserved in the buffers as they are.
struct sched_buffer_plan {
    bool valid;
    int32_t n_entries;
    struct live_range *ranges;
    struct live_offset *offsets;
    int32_t ranges_capacity, offsets_capacity;
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
