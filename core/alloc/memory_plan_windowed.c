// SPDX-License-Identifier: MIT
// Planning by windows. A graph of repeated layers has a peak in each layer and little alive between
// layers: the timeline is cut there, and each window is planned around its own peak, as if it were
// alone. Blocks that live across a cut lie below those of the windows, or come last, where these
// leave room, if they live at no peak: so does a sampler's next picture. Each step is one scan over
// the events, so that a try is O(events) and the planning around the peaks; what comes last is
// compared with the blocks that live about then (placed_blocks.h).
#include <string.h>

#include "alloc/memory_timeline.h"
#include "alloc/placed_blocks.h"
#include "base/mem.h"
#include "ggml-impl.h"

// Windows of blocks that live across a cut.
enum {
    ACROSS = -1,
    LATE = -2, // the same, but at no peak
};

struct windows {
    struct memory_block *blocks;
    const struct memory_timeline *timeline;
    size_t good_enough;
    int32_t *ends;      // by window: the event behind its last
    int32_t *window_of; // by block
    int32_t *events;    // of one window, while that is planned
    int32_t n_windows, n_late;
};

// Cuts where the least lives between times at which more than `little` does.
static void find_cuts(struct windows *windows, size_t little) {
    const int32_t n = windows->timeline->n_events;
    size_t least = 0; // since more lived, SIZE_MAX: more does
    int32_t least_at = -1;
    windows->n_windows = 0;
    for (int32_t i = 0; i < n; ++i) {
        const size_t live = windows->timeline->live[i];
        if (live > little) {
            if (least_at >= 0) windows->ends[windows->n_windows++] = least_at + 1;
            least = SIZE_MAX;
            least_at = -1;
        } else if (live < least) {
            least = live;
            least_at = i;
        }
    }
    windows->ends[windows->n_windows++] = n;
}

// The window of each block: that in which it begins, if it ends there too. Offsets are the events
// at which blocks begin meanwhile. LATE are those that never live when more than `much` does.
static void assign_blocks(struct windows *windows, size_t much) {
    const struct memory_timeline *timeline = windows->timeline;
    windows->n_late = 0;
    int32_t window = 0;
    size_t much_at = 0; // the last event behind which much lives
    for (int32_t i = 0; i < timeline->n_events; ++i) {
        const int32_t event = timeline->events[i];
        if (i == windows->ends[window]) ++window;
        if (timeline->live[i] > much) much_at = (size_t)i;
        if (event >= 0) {
            windows->window_of[event] = window;
            windows->blocks[event].offset = (size_t)i;
        } else if (windows->window_of[~event] != window) {
            const bool late = much_at < windows->blocks[~event].offset;
            windows->window_of[~event] = late ? LATE : ACROSS;
            windows->n_late += late;
        }
    }
}

// Plans the blocks of one window, whose events are among [begin, end), above `base`. Returns the
// end of the memory that they need; SIZE_MAX: it is more than what is good enough.
static size_t plan_window(const struct windows *windows, int32_t window, int32_t begin, int32_t end,
                          size_t base) {
    struct memory_timeline part = {.events = windows->events};
    for (int32_t i = begin; i < end; ++i) {
        const int32_t event = windows->timeline->events[i];
        if (windows->window_of[event < 0 ? ~event : event] != window) continue;
        part.events[part.n_events++] = event;
    }
    memory_timeline_find_peaks(windows->blocks, &part);
    const size_t needed =
        memory_plan_around_peak(windows->blocks, &part, windows->good_enough - base);
    if (needed == SIZE_MAX) return SIZE_MAX;
    for (int32_t i = 0; i < part.n_events; ++i) {
        if (part.events[i] >= 0) windows->blocks[part.events[i]].offset += base;
    }
    return base + needed;
}

// Places the late blocks above `base` when all others are. Returns the end of the highest;
// SIZE_MAX: it takes too long, or memory ran out.
static size_t place_all_late(const struct windows *windows, int32_t n, size_t base) {
    const struct memory_chunks no_limits = {0};
    struct placed_blocks placed;
    size_t needed = 0;
    if (!placed_blocks_begin(windows->blocks, n, &placed)) return SIZE_MAX;
    for (int32_t i = 0; i < n && placed.n_compared <= PLACED_BLOCKS_MOST_COMPARED; ++i) {
        windows->blocks[i].chunk = 0;
        if (windows->window_of[i] >= 0) placed_blocks_add(&placed, &windows->blocks[i]);
    }
    for (int32_t i = 0; i < n && placed.n_compared <= PLACED_BLOCKS_MOST_COMPARED; ++i) {
        struct memory_block *block = &windows->blocks[i];
        if (windows->window_of[i] != LATE) continue;
        block->offset = base;
        placed_blocks_fit(&placed, &no_limits, block);
        placed_blocks_add(&placed, block);
        needed = MAX(needed, block->offset + block->size);
    }
    if (placed.n_compared > PLACED_BLOCKS_MOST_COMPARED) needed = SIZE_MAX;
    placed_blocks_free(&placed);
    return needed;
}

// Cuts where at most `little` lives. SIZE_MAX: there is nothing to cut, or it needs too much.
static size_t plan_all(struct windows *windows, int32_t n, size_t little) {
    find_cuts(windows, little);
    if (windows->n_windows == 1) return SIZE_MAX;
    assign_blocks(windows, windows->timeline->most / 4 * 3);
    const size_t base = plan_window(windows, ACROSS, 0, windows->timeline->n_events, 0);
    int32_t begin = 0;
    size_t needed = base;
    for (int32_t i = 0; i < windows->n_windows && needed != SIZE_MAX; ++i) {
        const size_t end = plan_window(windows, i, begin, windows->ends[i], base);
        if (end > needed) needed = end;
        begin = windows->ends[i];
    }
    if (needed == SIZE_MAX) return SIZE_MAX;
    const size_t late = windows->n_late > 0 ? place_all_late(windows, n, base) : 0;
    if (late > windows->good_enough) return SIZE_MAX;
    return late > needed ? late : needed;
}

// Tries cuts where a 16th of the peak lives, then a quarter: the less lives across, the less is
// lost below the windows. The latter takes three fifths of the time of planning transformers
// greedily.
size_t memory_plan_windowed(struct memory_block *blocks, int32_t n,
                            const struct memory_timeline *timeline, size_t good_enough) {
    enum { LARGEST_SHARE = 4, SMALLEST_SHARE = 16 };
    const size_t n_events = (size_t)timeline->n_events, room = n_events + 1;
    int32_t *numbers = ggml_mem_alloc((2 * room + (size_t)n) * sizeof(numbers[0]));
    struct windows windows = {.blocks = blocks, .timeline = timeline, .good_enough = good_enough};
    size_t needed = SIZE_MAX;
    if (!numbers) return SIZE_MAX;
    windows.ends = numbers;
    windows.events = numbers + room;
    windows.window_of = numbers + 2 * room;
    memset(windows.window_of, 0xFF, (size_t)n * sizeof(int32_t)); // ACROSS: blocks without bytes
    for (size_t share = SMALLEST_SHARE; share >= LARGEST_SHARE && needed == SIZE_MAX; share /= 4) {
        needed = plan_all(&windows, n, timeline->most / share);
    }
    ggml_mem_free(numbers);
    return needed;
}
