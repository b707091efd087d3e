// SPDX-License-Identifier: MIT
// The memory plan of a graph: that of the buffers if it holds, else one of core/alloc's offline
// planner, which graph allocators use too.
#include "sched/pass/plan.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"

// Pools never change, so that one list of chunks each is allocated once.
bool sched_plan_begin(const struct sched_setup *setup, struct sched_plan *out) {
    out->pools = ggml_mem_calloc((size_t)setup->n_pools, sizeof(out->pools[0]));
    return out->pools != NULL;
}

// Forgets the last graph's plan.
static void forget_chunks(const struct sched_setup *setup, struct sched_plan *plan) {
    for (int p = 0; plan->pools && p < setup->n_pools; ++p) {
        memory_chunks_free(&plan->pools[p]);
    }
}

// Whether each pool has buffers as large as its chunks.
static bool fits(const struct sched_setup *setup, const struct sched_plan *plan) {
    bool all = true;
    for (int p = 0; p < setup->n_pools && all; ++p) {
        all = memory_pool_fits(&setup->pools[p], plan->pools[p].sizes, plan->pools[p].count);
    }
    return all;
}

// Reservations pass no plan: they are to find out what the graph needs by itself.
bool sched_plan_make(const struct sched_setup *setup, const struct sched_liveness *live,
                     const struct sched_buffer_plan *known, struct sched_plan *out) {
    const unsigned long failures_before = ggml_fail_count();
    const struct live_entries entries = {
        .ranges = live->ranges,
        .last = live->last,
        .numbers = live->numbers,
        .n = live->n_numbers,
        .n_entries = live->n_entries,
    };
    forget_chunks(setup, out);
    if (!array_grow(&out->offsets, &out->offsets_capacity, (int64_t)live->n_entries + 1,
                    sizeof(out->offsets[0]))) {
        return false;
    }
    if (live->held) {
        memcpy(out->offsets, known->offsets, (size_t)live->n_entries * sizeof(out->offsets[0]));
        out->fits = true;
        return true;
    }
    if (!live_offsets_plan(&entries, setup->pools, setup->n_pools, known != NULL, out->offsets,
                           out->pools)) {
        if (ggml_fail_count() == failures_before) {
            ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to plan that of the graph",
                      setup->function);
        }
        return false;
    }
    out->fits = fits(setup, out);
    return true;
}

bool sched_plan_provide(struct sched_setup *setup, const struct sched_plan *plan) {
    bool provided = true;
    for (int p = 0; p < setup->n_pools && provided; ++p) {
        const struct memory_chunks *chunks = &plan->pools[p];
        provided = memory_pool_provide(&setup->pools[p], chunks->sizes, chunks->count);
    }
    return provided;
}

void sched_plan_free(const struct sched_setup *setup, struct sched_plan *plan) {
    forget_chunks(setup, plan);
    ggml_mem_free(plan->pools);
    ggml_mem_free(plan->offsets);
}

// --- the plan of the buffers

// Copies what the next graph is compared with, as the live ranges are those of the next graph soon.
void sched_buffer_plan_set(const struct sched_liveness *live, const struct sched_plan *plan,
                           struct sched_buffer_plan *out) {
    const int64_t n = live->n_entries;
    out->valid = array_grow(&out->ranges, &out->ranges_capacity, n + 1, sizeof(out->ranges[0])) &&
                 array_grow(&out->last, &out->last_capacity, n + 1, sizeof(out->last[0])) &&
                 array_grow(&out->offsets, &out->offsets_capacity, n + 1, sizeof(out->offsets[0]));
    if (!out->valid) return;
    out->n_entries = live->n_entries;
    memcpy(out->ranges, live->ranges, (size_t)n * sizeof(out->ranges[0]));
    memcpy(out->last, live->last, (size_t)n * sizeof(out->last[0]));
    memcpy(out->offsets, plan->offsets, (size_t)n * sizeof(out->offsets[0]));
}

void sched_buffer_plan_free(struct sched_buffer_plan *plan) {
    ggml_mem_free(plan->ranges);
    ggml_mem_free(plan->last);
    ggml_mem_free(plan->offsets);
}
