// SPDX-License-Identifier: MIT
// A free list that is walked in execution order, the fast planner: O(1) per block for the few free
// ranges that graphs have. Long-lived blocks are allocated from one end of the range and
// short-lived ones from the other. The policy says from how many steps on a block counts as
// long-lived; callers try several, and begin with the one that suited their last graph.
#ifndef GGML_ALLOC_MEMORY_QUICK_H
#define GGML_ALLOC_MEMORY_QUICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_QUICK_HOLES = 48, MEMORY_QUICK_POLICIES = 7 };

// Zero-initialised is empty. [any-thread]
struct memory_quick {
    size_t capacity; // what the long and the short-lived share; more is added as needed
    size_t end;      // everything behind it is free
    size_t peak;     // largest end of a block
    int32_t policy;  // below MEMORY_QUICK_POLICIES
    int32_t steps;   // blocks that live for at least as many lie at the bottom
    bool smallest;   // they take the smallest hole, else the outermost
    int32_t n_holes;
    struct memory_quick_hole {
        size_t begin;
        size_t end;
    } holes[MEMORY_QUICK_HOLES]; // below `end`, by address; neighbours are merged
};

// Empties it. capacity: the largest sum of blocks that live at once.
void memory_quick_begin(struct memory_quick *memory, int32_t policy, size_t capacity);
// Like memory_quick_begin(), with an explicit policy; [0, capacity) is occupied at the start.
void memory_quick_begin_full(struct memory_quick *memory, int32_t steps, bool smallest,
                             size_t capacity);
// Whether its plan depends on the capacity.
static inline bool memory_quick_uses_capacity(const struct memory_quick *memory) {
    return memory->steps > 0;
}
// Slow paths of the next two functions, which leave blocks of 0 bytes to them.
size_t memory_quick_search(struct memory_quick *memory, size_t size, bool bottom);
void memory_quick_insert(struct memory_quick *memory, int32_t at, size_t begin, size_t end);

// Returns the offset of a block that lives for so many steps. Sizes must not add up to more than
// SIZE_MAX / 2.
static inline size_t memory_quick_take(struct memory_quick *memory, size_t size, int32_t steps) {
    const bool bottom = steps >= memory->steps;
    if (size == 0) return 0;
    if (memory->smallest || memory->n_holes == 0) return memory_quick_search(memory, size, bottom);
    struct memory_quick_hole *hole = &memory->holes[bottom ? 0 : memory->n_holes - 1];
    if (hole->end - hole->begin <= size) return memory_quick_search(memory, size, bottom);
    const size_t offset = bottom ? hole->begin : hole->end - size;
    if (bottom) {
        hole->begin += size;
    } else {
        hole->end -= size;
    }
    if (offset + size > memory->peak) memory->peak = offset + size;
    return offset;
}

// A block that was taken. When there are too many holes the smallest is never used again.
static inline void memory_quick_release(struct memory_quick *memory, size_t offset, size_t size) {
    const size_t end = offset + size;
    int32_t i = memory->n_holes; // the hole above
    if (size == 0) return;
    while (i > 0 && memory->holes[i - 1].begin > offset) {
        --i;
    }
    struct memory_quick_hole *above = &memory->holes[i], *below = above - 1;
    const bool joins_below = i > 0 && below->end == offset;
    const bool joins_above = i < memory->n_holes && above->begin == end;
    if (joins_below == joins_above || (end == memory->end && memory->capacity == 0)) {
        memory_quick_insert(memory, i, offset, end);
    } else if (joins_below) {
        below->end = end;
    } else {
        above->begin = offset;
    }
}

#endif
