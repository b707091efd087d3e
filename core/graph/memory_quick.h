// SPDX-License-Identifier: MIT
// One stretch of memory that is handed out as time goes by. Blocks that live long lie at one end
// and short-lived ones at the other: which lifetime is long decides how much is wasted, and is
// tried out. Where a way was good for one graph it is good for the next.
#ifndef GGML_GRAPH_MEMORY_QUICK_H
#define GGML_GRAPH_MEMORY_QUICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_QUICK_HOLES = 48, MEMORY_QUICK_WAYS = 7 };

// Zero-initialised is empty. [any-thread]
struct memory_quick {
    size_t capacity; // what the long and the short-lived share; more is added as needed
    size_t end;      // everything behind it is free
    size_t peak;     // largest end of a block
    int32_t way;     // below MEMORY_QUICK_WAYS
    int32_t steps;   // blocks that live for at least as many lie at the bottom
    bool smallest;   // they take the smallest hole, else the outermost
    int32_t n_holes;
    struct memory_quick_hole {
        size_t offset;
        size_t size;
    } holes[MEMORY_QUICK_HOLES]; // below `end`, by offset; neighbours are merged
};

// Empties it. capacity: the largest sum of blocks that live at once.
void memory_quick_begin(struct memory_quick *memory, int32_t way, size_t capacity);
// The same by a way of one's own, with the capacity full of blocks that are to be released.
void memory_quick_begin_full(struct memory_quick *memory, int32_t steps, bool smallest,
                             size_t capacity);
// Whether its plan depends on the capacity.
static inline bool memory_quick_uses_capacity(const struct memory_quick *memory) {
    return memory->steps > 0;
}
// Answers the offset of a block that lives for so many steps. Sizes must not add up to more than
// SIZE_MAX / 2.
size_t memory_quick_take(struct memory_quick *memory, size_t size, int32_t steps);
// A block that was taken. When there are too many holes the smallest is never used again.
void memory_quick_release(struct memory_quick *memory, size_t offset, size_t size);

#endif
