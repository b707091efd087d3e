// SPDX-License-Identifier: MIT
// The steps at which blocks begin and end, in order, for planners that sweep forward and backward.
#ifndef GGML_ALLOC_MEMORY_TIMELINE_H
#define GGML_ALLOC_MEMORY_TIMELINE_H

#include "alloc/memory_plan.h"

struct memory_timeline {
    // Block numbers where they begin and complements where they end. At one time all begin before
    // any ends. Blocks without bytes are left out.
    int32_t *events;
    int32_t n_events;
    size_t *live;      // bytes that live after each event; NULL: not needed
    size_t most;       // largest sum of blocks that live at once; SIZE_MAX: it has no address
    int32_t last_peak; // the last event after which that many bytes live
};

// In O(n and the times between the first and the last beginning). false when memory runs out, with
// an empty timeline. The caller frees it. [any-thread]
bool memory_timeline_make(const struct memory_block *blocks, int32_t n,
                          struct memory_timeline *out_timeline);
void memory_timeline_free(struct memory_timeline *timeline);
// Finds the most that lives and its peaks again, for events that are some of a timeline's.
void memory_timeline_find_peaks(const struct memory_block *blocks,
                                struct memory_timeline *timeline);

// Plans around the last peak: what lives there is stacked without a gap, and the times after and
// before it, which don't meet, are planned away from it. Returns the bytes that are needed;
// SIZE_MAX when that is more than good_enough, at most SIZE_MAX / 2: then offsets mean nothing.
// The events may be some of a timeline's, of which their blocks alone are placed. [any-thread]
size_t memory_plan_around_peak(struct memory_block *blocks, const struct memory_timeline *timeline,
                               size_t good_enough);

// Cuts the time where little lives and plans the windows, each on its own, above what lives across
// the cuts. Returns the bytes that are needed, SIZE_MAX when that is more than good_enough, at
// most SIZE_MAX / 2, or memory ran out; then offsets mean nothing. [any-thread]
size_t memory_plan_windowed(struct memory_block *blocks, int32_t n,
                            const struct memory_timeline *timeline, size_t good_enough);

// The planners that use several chunks. Both return false when memory runs out; there are no chunks
// then.

// First fit in the order of the timeline. [any-thread]
bool memory_plan_by_time(struct memory_block *blocks, int32_t n,
                         const struct memory_timeline *timeline, size_t chunk_limit,
                         struct memory_chunks *out_chunks);
// Greedy by breadth, or by size. Also false when too many blocks live at once to compare them all.
// [any-thread]
bool memory_plan_greedy(struct memory_block *blocks, int32_t n,
                        const struct memory_timeline *timeline, size_t chunk_limit,
                        struct memory_chunks *out_chunks);

#endif
