// SPDX-License-Identifier: MIT
// Sorts the beginnings and ends of blocks by counting: times are steps of a graph, so that they are
// dense.
#include "alloc/memory_timeline.h"

#include "base/mem.h"

// Times that are counted: two slots each, for those that begin and those that end.
struct span {
    int32_t first;
    int32_t last; // time at which a block begins; later ends are as good as this
};

// From the first beginning to the last: ends behind it need no slots of their own.
static struct span find_span(const struct memory_block *blocks, int32_t n) {
    struct span span = {INT32_MAX, INT32_MIN};
    for (int32_t i = 0; i < n; ++i) {
        if (blocks[i].first < span.first) span.first = blocks[i].first;
        if (blocks[i].first > span.last) span.last = blocks[i].first;
    }
    return span;
}

// Even slots hold beginnings, the odd ones behind them the ends of the same time.
static int64_t begin_slot(const struct span *span, const struct memory_block *block) {
    return 2 * ((int64_t)block->first - span->first);
}

// Ends behind the last beginning share its slot: nothing is placed between them.
static int64_t end_slot(const struct span *span, const struct memory_block *block) {
    const int32_t last = block->last < span->last ? block->last : span->last;
    return 2 * ((int64_t)last - span->first) + 1;
}

// Counting sort. Ends of one time go from the block that began last to the one that began first:
// a walk backwards meets the long-lived ones first.
static bool sort_by_counting(const struct memory_block *blocks, int32_t n,
                             struct memory_timeline *timeline) {
    const struct span span = find_span(blocks, n);
    const size_t slots = 2 * ((size_t)((int64_t)span.last - span.first) + 1);
    int32_t *places = ggml_mem_calloc(slots, sizeof(places[0]));
    if (!places) return false;
    for (int32_t i = 0; i < n; ++i) {
        if (blocks[i].size == 0) continue;
        ++places[begin_slot(&span, &blocks[i])];
        ++places[end_slot(&span, &blocks[i])];
    }
    int32_t total = 0;
    for (size_t i = 0; i < slots; ++i) {
        const int32_t count = places[i];
        places[i] = i % 2 == 0 ? total : total + count; // ends are filled from behind
        total += count;
    }
    for (int32_t i = 0; i < n; ++i) {
        if (blocks[i].size == 0) continue;
        timeline->events[places[begin_slot(&span, &blocks[i])]++] = i;
        timeline->events[--places[end_slot(&span, &blocks[i])]] = ~i;
    }
    timeline->n_events = total;
    ggml_mem_free(places);
    return true;
}

// A running sum over the events; its maximum is the lower bound of any plan.
void memory_timeline_find_peaks(const struct memory_block *blocks,
                                struct memory_timeline *timeline) {
    size_t live = 0;
    timeline->most = 0;
    timeline->last_peak = -1;
    for (int32_t i = 0; i < timeline->n_events; ++i) {
        const int32_t event = timeline->events[i];
        if (event < 0) {
            live -= blocks[~event].size;
        } else if (live <= SIZE_MAX - blocks[event].size) {
            live += blocks[event].size;
        } else {
            timeline->most = SIZE_MAX;
            return;
        }
        if (timeline->live) timeline->live[i] = live;
        if (event < 0 || live < timeline->most) continue;
        timeline->last_peak = i;
        timeline->most = live;
    }
}

bool memory_timeline_make(const struct memory_block *blocks, int32_t n,
                          struct memory_timeline *out_timeline) {
    *out_timeline = (struct memory_timeline){0};
    out_timeline->events = ggml_mem_alloc((2 * (size_t)n + 1) * sizeof(out_timeline->events[0]));
    out_timeline->live = ggml_mem_calloc(2 * (size_t)n + 1, sizeof(out_timeline->live[0]));
    if (!out_timeline->events || !out_timeline->live ||
        (n > 0 && !sort_by_counting(blocks, n, out_timeline))) {
        memory_timeline_free(out_timeline);
        return false;
    }
    memory_timeline_find_peaks(blocks, out_timeline);
    return true;
}

// Leaves an empty timeline.
void memory_timeline_free(struct memory_timeline *timeline) {
    ggml_mem_free(timeline->events);
    ggml_mem_free(timeline->live);
    *timeline = (struct memory_timeline){0};
}
