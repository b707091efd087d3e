// SPDX-License-Identifier: MIT
// Free list with first, last or best fit (Knuth, The Art of Computer Programming, volume 1, 2.5),
// in a small sorted array: graphs have few free ranges at once, and an array of them stays in the
// cache.
#include "alloc/memory_quick.h"

#include <string.h>

// Blocks that live for at least `steps` lie at the bottom, others at the top.
static const struct policy {
    int32_t steps; // 0: all at the bottom, which then ends where they end
    bool smallest; // in the smallest hole, else in the outermost
} policies[MEMORY_QUICK_POLICIES] = {
    {0, true}, {5, true}, {3, false}, {5, false}, {10, false}, {16, false}, {8, true},
};

void memory_quick_begin(struct memory_quick *memory, int32_t policy, size_t capacity) {
    memory->policy = policy;
    memory->steps = policies[policy].steps;
    memory->smallest = policies[policy].smallest;
    memory->peak = 0;
    memory->capacity = memory->end = policies[policy].steps > 0 ? capacity : 0;
    memory->n_holes = memory->end > 0;
    memory->holes[0] = (struct memory_quick_hole){0, memory->end};
}

void memory_quick_begin_full(struct memory_quick *memory, int32_t steps, bool smallest,
                             size_t capacity) {
    memory->policy = 0;
    memory->steps = steps;
    memory->smallest = smallest;
    memory->n_holes = 0;
    memory->capacity = memory->end = memory->peak = capacity;
}

static size_t size_of(const struct memory_quick_hole *hole) {
    return hole->end - hole->begin;
}

static void remove_hole(struct memory_quick *memory, int32_t i) {
    --memory->n_holes;
    memmove(&memory->holes[i], &memory->holes[i + 1],
            (size_t)(memory->n_holes - i) * sizeof(memory->holes[0]));
}

// Best fit; of equal holes the first from the bottom or the last from the top. O(holes).
static int32_t smallest_hole(const struct memory_quick *memory, size_t size, bool bottom) {
    int32_t best = -1;
    size_t best_size = SIZE_MAX;
    for (int32_t i = 0; i < memory->n_holes; ++i) {
        const size_t hole = size_of(&memory->holes[i]);
        if (hole < size || hole > best_size || (bottom && hole == best_size)) continue;
        best = i;
        best_size = hole;
    }
    return best;
}

// First fit from the bottom, last fit from the top.
static int32_t outermost_hole(const struct memory_quick *memory, size_t size, bool bottom) {
    int32_t i = bottom ? 0 : memory->n_holes - 1;
    while (i >= 0 && i < memory->n_holes && size_of(&memory->holes[i]) < size) {
        i += bottom ? 1 : -1;
    }
    return i < memory->n_holes ? i : -1;
}

// At the end, in the hole there if there is one.
static size_t extend(struct memory_quick *memory, size_t size) {
    size_t offset = memory->end;
    if (memory->n_holes > 0 && memory->holes[memory->n_holes - 1].end == memory->end) {
        offset = memory->holes[--memory->n_holes].begin;
    }
    memory->end = offset + size;
    return offset;
}

// Cuts the block off the hole's lower or upper end.
static size_t take_from(struct memory_quick *memory, int32_t i, size_t size, bool bottom) {
    struct memory_quick_hole *hole = &memory->holes[i];
    const size_t offset = bottom ? hole->begin : hole->end - size;
    if (size_of(hole) == size) {
        remove_hole(memory, i);
    } else if (bottom) {
        hole->begin += size;
    } else {
        hole->end -= size;
    }
    return offset;
}

size_t memory_quick_search(struct memory_quick *memory, size_t size, bool bottom) {
    const int32_t i = memory->smallest ? smallest_hole(memory, size, bottom)
                                       : outermost_hole(memory, size, bottom);
    const size_t offset = i < 0 ? extend(memory, size) : take_from(memory, i, size, bottom);
    if (offset + size > memory->peak) memory->peak = offset + size;
    return offset;
}

// When the array is full the smallest hole is dropped: its bytes stay unused until the end.
static void add_hole(struct memory_quick *memory, int32_t at, size_t begin, size_t end) {
    if (memory->n_holes == MEMORY_QUICK_HOLES) {
        const int32_t smallest = smallest_hole(memory, 0, true);
        if (end - begin <= size_of(&memory->holes[smallest])) return;
        remove_hole(memory, smallest);
        if (smallest < at) --at;
    }
    memmove(&memory->holes[at + 1], &memory->holes[at],
            (size_t)(memory->n_holes - at) * sizeof(memory->holes[0]));
    memory->holes[at] = (struct memory_quick_hole){begin, end};
    ++memory->n_holes;
}

void memory_quick_insert(struct memory_quick *memory, int32_t at, size_t begin, size_t end) {
    struct memory_quick_hole *below = at > 0 ? &memory->holes[at - 1] : NULL;
    struct memory_quick_hole *above = at < memory->n_holes ? &memory->holes[at] : NULL;
    const bool joins_below = below && below->end == begin;
    const bool joins_above = above && above->begin == end;
    if (end == memory->end && memory->capacity == 0) {
        memory->end = joins_below ? below->begin : begin;
        memory->n_holes -= joins_below;
    } else if (joins_below) {
        below->end = joins_above ? above->end : end;
        if (joins_above) remove_hole(memory, at);
    } else if (joins_above) {
        above->begin = begin;
    } else {
        add_hole(memory, at, begin, end);
    }
}
