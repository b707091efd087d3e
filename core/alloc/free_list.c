// SPDX-License-Identifier: MIT
// Ranges of free memory in a sorted array: see free_list.h.
#include "alloc/free_list.h"

#include <string.h>

void free_list_begin(struct free_list *list, size_t occupied) {
    list->end = occupied;
    list->n_ranges = 0;
}

// Bytes of a range, never 0.
static size_t size_of(const struct free_range *range) {
    return range->end - range->begin;
}

// O(ranges), as the array stays sorted.
static void remove_range(struct free_list *list, int32_t i) {
    --list->n_ranges;
    memmove(&list->ranges[i], &list->ranges[i + 1],
            (size_t)(list->n_ranges - i) * sizeof(list->ranges[0]));
}

// There must be room.
static void insert_range(struct free_list *list, int32_t i, size_t begin, size_t end) {
    memmove(&list->ranges[i + 1], &list->ranges[i],
            (size_t)(list->n_ranges - i) * sizeof(list->ranges[0]));
    list->ranges[i] = (struct free_range){begin, end};
    ++list->n_ranges;
}

// First fit from the bottom, last fit from the top. -1: none fits.
static int32_t find_fit(const struct free_list *list, size_t size, bool bottom) {
    int32_t i = bottom ? 0 : list->n_ranges - 1;
    while (i >= 0 && i < list->n_ranges && size_of(&list->ranges[i]) < size) {
        i += bottom ? 1 : -1;
    }
    return i < list->n_ranges ? i : -1;
}

// Behind all blocks, beginning in the free range there if there is one.
static size_t extend(struct free_list *list, size_t size, size_t limit) {
    const int32_t last = list->n_ranges - 1;
    const bool joins = last >= 0 && list->ranges[last].end == list->end;
    const size_t offset = joins ? list->ranges[last].begin : list->end;
    if (size > limit || offset > limit - size) return SIZE_MAX;
    list->n_ranges -= joins;
    list->end = offset + size;
    return offset;
}

// Blocks without bytes take nothing.
size_t free_list_take(struct free_list *list, size_t size, bool bottom, size_t limit) {
    if (size == 0) return 0;
    const int32_t i = find_fit(list, size, bottom);
    if (i < 0) return extend(list, size, limit);
    struct free_range *range = &list->ranges[i];
    const size_t offset = bottom ? range->begin : range->end - size;
    if (size_of(range) == size) {
        remove_range(list, i);
    } else if (bottom) {
        range->begin += size;
    } else {
        range->end -= size;
    }
    return offset;
}

static int32_t find_smallest(const struct free_list *list) {
    int32_t smallest = 0;
    for (int32_t i = 1; i < list->n_ranges; ++i) {
        if (size_of(&list->ranges[i]) < size_of(&list->ranges[smallest])) smallest = i;
    }
    return smallest;
}

// Searched from the top, where most blocks come and go, and merged with its neighbours.
void free_list_release(struct free_list *list, size_t offset, size_t size) {
    const size_t end = offset + size;
    int32_t i = list->n_ranges; // the range above
    if (size == 0) return;
    while (i > 0 && list->ranges[i - 1].begin > offset) {
        --i;
    }
    struct free_range *above = &list->ranges[i], *below = above - 1;
    const bool joins_below = i > 0 && below->end == offset;
    const bool joins_above = i < list->n_ranges && above->begin == end;
    if (joins_below && joins_above) {
        below->end = above->end;
        remove_range(list, i);
    } else if (joins_below) {
        below->end = end;
    } else if (joins_above) {
        above->begin = offset;
    } else if (list->n_ranges < FREE_LIST_RANGES) {
        insert_range(list, i, offset, end);
    } else {
        const int32_t smallest = find_smallest(list);
        if (size <= size_of(&list->ranges[smallest])) return;
        remove_range(list, smallest);
        insert_range(list, smallest < i ? i - 1 : i, offset, end);
    }
}
