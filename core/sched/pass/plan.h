// SPDX-License-Identifier: MIT
// The memory plan: an offset for every entry that needs memory.
#ifndef GGML_SCHED_PLAN_H
#define GGML_SCHED_PLAN_H

#include "alloc/offsets.h"
#include "sched/pass/liveness.h"

struct sched_plan {
    struct live_offset *offsets; // by entry
    int32_t offsets_capacity;
    struct memory_chunks *pools; // by pool; none while the plan of the buffers holds
    bool fits;                   // the buffers are as large as planned
};

// The plan that the buffers were made for. It holds for graphs whose tensors live as long and are
// no larger, which keeps smaller graphs than the one that was reserved in the buffers as they are.
struct sched_buffer_plan {
    bool valid;
    int32_t n_entries;
    struct live_range *ranges;
    struct live_last *last;
    struct live_offset *offsets;
    int32_t ranges_capacity, last_capacity, offsets_capacity;
};

// Makes room for all pools; false when memory runs out.
bool sched_plan_begin(const struct sched_setup *setup, struct sched_plan *out);
// Plans the memory of a graph with these live ranges, in time n log n. `known`, unless it is NULL,
// is taken where it holds, and a plan that fits into the buffers as they are is good enough. false
// after the error was set.
bool sched_plan_make(const struct sched_setup *setup, const struct sched_liveness *live,
                     const struct sched_buffer_plan *known, struct sched_plan *out);
void sched_plan_free(const struct sched_setup *setup, struct sched_plan *plan);

// Remembers a plan, whose buffers were made. Without memory for that nothing is remembered.
void sched_buffer_plan_set(const struct sched_liveness *live, const struct sched_plan *plan,
                           struct sched_buffer_plan *out);
void sched_buffer_plan_free(struct sched_buffer_plan *plan);

#endif
