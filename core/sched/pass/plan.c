// SPDX-License-Identifier: MIT
// The memory plan of a graph: that of the buffers if it holds, else one of core/alloc's offline
// planner, pool by pool. It gets one block per range of memory, which entries share where memory is
// taken over.
#include "sched/pass/plan.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"

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

// --- a new plan

// Makes the blocks, those of pool p being [begins[p], begins[p + 1]): a counting sort by pool,
// stable within each. Until there are places, the chunk of an entry is the number of its block.
// O(entries + pools).
static void sort_blocks(const struct sched_liveness *live, int n_pools, int32_t *begins,
                        struct memory_block *blocks, struct live_offset *offsets) {
    int32_t *next = begins + 1; // becomes begins[p + 1] when all of the pool are there
    memset(begins, 0, ((size_t)n_pools + 2) * sizeof(begins[0]));
    for (int32_t i = 0; i < live->n_numbers; ++i) {
        const struct live_range *range = &live->ranges[live->numbers[i]];
        if (range->from < 0) ++next[range->pool + 1];
    }
    for (int p = 0; p < n_pools; ++p) {
        next[p + 1] += next[p];
    }
    for (int32_t i = 0; i < live->n_numbers; ++i) {
        const int32_t entry = live->numbers[i];
        const struct live_range *range = &live->ranges[entry];
        if (range->from >= 0) {
            offsets[entry].chunk = offsets[range->from].chunk;
            continue;
        }
        const int32_t block = offsets[entry].chunk = next[range->pool]++;
        blocks[block] =
            (struct memory_block){.size = range->size, .first = range->first, .last = range->last};
    }
}

// Bytes that a plan may need without a better one being looked for.
static size_t bytes_at_hand(const struct memory_pool *pool) {
    ggml_backend_buffer_t buffer = pool->n_chunks == 1 ? pool->chunks[0].buffer : NULL;
    return buffer ? ggml_backend_buffer_get_size(buffer) : 0;
}

// Pools are independent: their blocks never share memory. A quarter of the address space leaves
// room for sums of offsets and sizes.
static bool plan_pools(const struct sched_setup *setup, const int32_t *begins, bool for_use,
                       struct memory_block *blocks, struct sched_plan *out) {
    for (int p = 0; p < setup->n_pools; ++p) {
        const struct memory_pool *pool = &setup->pools[p];
        if (!memory_plan(blocks + begins[p], begins[p + 1] - begins[p], pool->chunk_limit,
                         for_use ? bytes_at_hand(pool) : 0, &out->pools[p])) {
            return false;
        }
        if (memory_chunks_total(&out->pools[p]) <= SIZE_MAX / 4) continue;
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: the graph needs more memory than has addresses",
                  setup->function);
        return false;
    }
    return true;
}

// Whether each pool has buffers as large as its chunks.
static bool fits(const struct sched_setup *setup, const struct sched_plan *plan) {
    bool all = true;
    for (int p = 0; p < setup->n_pools && all; ++p) {
        all = memory_pool_fits(&setup->pools[p], plan->pools[p].sizes, plan->pools[p].count);
    }
    return all;
}

// Blocks exist only while they are planned; entries get what was found for theirs. false, perhaps
// without a message, when memory or addresses run out.
static bool make_plan(const struct sched_setup *setup, const struct sched_liveness *live,
                      bool for_use, struct sched_plan *out) {
    struct memory_block *blocks = ggml_mem_alloc(((size_t)live->n_numbers + 1) * sizeof(blocks[0]));
    int32_t *begins = ggml_mem_alloc(((size_t)setup->n_pools + 2) * sizeof(begins[0]));
    bool good = blocks && begins;
    if (good) {
        sort_blocks(live, setup->n_pools, begins, blocks, out->offsets);
        good = plan_pools(setup, begins, for_use, blocks, out);
    }
    for (int32_t i = 0; i < live->n_numbers && good; ++i) {
        struct live_offset *place = &out->offsets[live->numbers[i]];
        const struct memory_block *block = &blocks[place->chunk];
        *place = (struct live_offset){block->offset, block->chunk};
    }
    ggml_mem_free(blocks);
    ggml_mem_free(begins);
    return good;
}

// Reservations pass no plan: they are to find out what the graph needs by itself.
bool sched_plan_make(const struct sched_setup *setup, const struct sched_liveness *live,
                     const struct sched_buffer_plan *known, struct sched_plan *out) {
    const unsigned long failures_before = ggml_fail_count();
    forget_chunks(setup, out);
    if (!ARRAY_GROW(out, offsets, (int64_t)live->n_entries + 1)) return false;
    if (live->held) {
        memcpy(out->offsets, known->offsets, (size_t)live->n_entries * sizeof(out->offsets[0]));
        out->fits = true;
        return true;
    }
    if (!make_plan(setup, live, known != NULL, out)) {
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
    out->valid = ARRAY_GROW(out, ranges, n + 1) && ARRAY_GROW(out, offsets, n + 1);
    if (!out->valid) return;
    out->n_entries = live->n_entries;
    memcpy(out->ranges, live->ranges, (size_t)n * sizeof(out->ranges[0]));
    memcpy(out->offsets, plan->offsets, (size_t)n * sizeof(out->offsets[0]));
}

void sched_buffer_plan_free(struct sched_buffer_plan *plan) {
    ggml_mem_free(plan->ranges);
    ggml_mem_free(plan->offsets);
}
