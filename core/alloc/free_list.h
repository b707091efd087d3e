// SPDX-License-Identifier: MIT
// A free list of memory ranges with first fit and last fit (Knuth, The Art of Computer Programming,
// volume 1, 2.5), in a small sorted array: graphs have few free ranges at once. Taking and
// releasing cost O(ranges), of which there are at most FREE_LIST_RANGES.
#ifndef GGML_ALLOC_FREE_LIST_H
#define GGML_ALLOC_FREE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FREE_LIST_RANGES = 48 };

// [any-thread]
struct free_list {
    size_t end; // largest end of a block so far; everything behind it is free
    int32_t n_ranges;
    struct free_range {
        size_t begin;
        size_t end;
    } ranges[FREE_LIST_RANGES]; // below `end`, by address; neighbours are merged
};

// [0, occupied) is taken at the start.
void free_list_begin(struct free_list *list, size_t occupied);
// Returns the offset of a block: at the lower end of the first range from the bottom that holds it,
// or at the upper end of the first from the top; behind all if none does. SIZE_MAX, and nothing is
// taken, if it would end behind `limit`.
size_t free_list_take(struct free_list *list, size_t size, bool bottom, size_t limit);
// A range that is taken. When there are too many free ranges the smallest is never used again.
void free_list_release(struct free_list *list, size_t offset, size_t size);

#endif
