// SPDX-License-Identifier: MIT
// The memory plan: an offset for every entry that needs memory.
#ifndef GGML_SCHED_PLAN_H
#define GGML_SCHED_PLAN_H

#include "alloc/memory_plan.h"
#include "sched/pass/liveness.h"

struct sched_plan {
    struct live_offset *offsets; // by entry
    int32_t offsets_capacity;
    struct memory_chunks *pools; // by pool; none while the plan of the buffers holds
    bool fits;                   // the buffers are as large as planned
};

// Makes room for all pools; false when memory runs out.
bool sched_plan_begin(const struct sched_setup *setup, struct sched_plan *out);
// Plans the memory of a graph with these live ranges. `known`, unless it is NULL,
// is what liveness was found with: it is taken if it holds, else a plan that fits into the buffers
// as they are is good enough. false after the error was set.
bool sched_plan_make(const struct sched_setup *setup, const struct sched_liveness *live,
                     const struct sched_buffer_plan *known, struct sched_plan *out);
// Makes the buffers as large as planned; false with a message.
bool sched_plan_provide(struct sched_setup *setup, const struct sched_plan *plan);
void sched_plan_free(const struct sched_setup *setup, struct sched_plan *plan);

// Remembers a plan, whose buffers were made. Without memory for that nothing is remembered.
void sched_buffer_plan_set(const struct sched_liveness *live, const struct sched_plan *plan,
                           struct sched_buffer_plan *out);
void sched_buffer_plan_free(struct sched_buffer_plan *plan);

#endif
