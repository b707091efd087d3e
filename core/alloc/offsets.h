// SPDX-License-Identifier: MIT
// From live ranges to offsets: one block per range of memory, which entries share where memory is
// taken over, planned pool by pool with memory_plan(). Written once for the graph allocator and the
// scheduler.
#ifndef GGML_ALLOC_OFFSETS_H
#define GGML_ALLOC_OFFSETS_H

#include "alloc/liveness.h"
#include "alloc/memory_plan.h"
#include "alloc/memory_pool.h"

// Where an entry lies in the memory of its pool.
struct live_offset {
    size_t offset;
    int32_t chunk;
};

// The entries that need memory, in an order in which one that takes memory over comes behind the
// one it takes it from.
struct live_entries {
    const struct live_range *ranges; // by entry
    const struct live_last *last;    // by entry
    const int32_t *numbers;          // of those that need memory
    int32_t n;
    int32_t n_entries;
};

// Plans all pools. for_use: a plan that fits into a pool's buffers as they are is good enough.
// offsets, by entry, are written for those that need memory; so is out_chunks, by pool, which the
// caller frees, also on failure. false, perhaps without a message, when memory or addresses run
// out. O(entries + pools) and the planner. [stream]
bool live_offsets_plan(const struct live_entries *entries, const struct memory_pool *pools,
                       int n_pools, bool for_use, struct live_offset *offsets,
                       struct memory_chunks *out_chunks);

#endif
