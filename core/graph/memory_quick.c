// SPDX-License-Identifier: MIT
#include "graph/memory_quick.h"

#include <string.h>

// Blocks that live for at least `steps` lie at the bottom, others at the top.
static const struct way {
    int32_t steps; // 0: all at the bottom, which then ends where they end
    bool smallest; // in the smallest hole, else in the outermost
} ways[MEMORY_QUICK_WAYS] = {
    {0, true}, {5, true}, {3, false}, {5, false}, {10, false}, {16, false}, {8, true},
};

void memory_quick_begin(struct memory_quick *memory, int32_t way, size_t capacity) {
    memory->way = way;
    memory->steps = ways[way].steps;
    memory->smallest = ways[way].smallest;
    memory->peak = 0;
    memory->capacity = memory->end = ways[way].steps > 0 ? capacity : 0;
    memory->n_holes = memory->end > 0;
    memory->holes[0] = (struct memory_quick_hole){0, memory->end};
}

void memory_quick_begin_full(struct memory_quick *memory, int32_t steps, bool smallest,
                             size_t capacity) {
    memory->way = 0;
    memory->steps = steps;
    memory->smallest = smallest;
    memory->n_holes = 0;
    memory->capacity = memory->end = memory->peak = capacity;
}

static void remove_hole(struct memory_quick *memory, int32_t i) {
    --memory->n_holes;
    memmove(&memory->holes[i], &memory->holes[i + 1],
            (size_t)(memory->n_holes - i) * sizeof(memory->holes[0]));
}

static int32_t smallest_hole(const struct memory_quick *memory, size_t size, bool bottom) {
    int32_t best = -1;
    size_t best_size = SIZE_MAX;
    for (int32_t i = 0; i < memory->n_holes; ++i) {
        const size_t hole = memory->holes[i].size;
        if (hole < size || hole > best_size || (bottom && hole == best_size)) continue;
        best = i;
        best_size = hole;
    }
    return best;
}

static int32_t outermost_hole(const struct memory_quick *memory, size_t size, bool bottom) {
    int32_t i = bottom ? 0 : memory->n_holes - 1;
    while (i >= 0 && i < memory->n_holes && memory->holes[i].size < size) {
        i += bottom ? 1 : -1;
    }
    return i < memory->n_holes ? i : -1;
}

// At the end, in the hole there if there is one.
static size_t extend(struct memory_quick *memory, size_t size) {
    size_t offset = memory->end;
    if (memory->n_holes > 0) {
        const struct memory_quick_hole *hole = &memory->holes[memory->n_holes - 1];
        if (hole->offset + hole->size == memory->end) {
            offset = hole->offset;
            --memory->n_holes;
        }
    }
    memory->end = offset + size;
    return offset;
}

static size_t take_from(struct memory_quick *memory, int32_t i, size_t size, bool bottom) {
    struct memory_quick_hole *hole = &memory->holes[i];
    hole->size -= size;
    const size_t offset = bottom ? hole->offset : hole->offset + hole->size;
    if (bottom) hole->offset += size;
    if (hole->size == 0) remove_hole(memory, i);
    return offset;
}

size_t memory_quick_take(struct memory_quick *memory, size_t size, int32_t steps) {
    const bool bottom = steps >= memory->steps;
    if (size == 0) return 0;
    const int32_t i = memory->smallest ? smallest_hole(memory, size, bottom)
                                       : outermost_hole(memory, size, bottom);
    const size_t offset = i < 0 ? extend(memory, size) : take_from(memory, i, size, bottom);
    if (offset + size > memory->peak) memory->peak = offset + size;
    return offset;
}

static void add_hole(struct memory_quick *memory, int32_t at, size_t offset, size_t size) {
    if (memory->n_holes == MEMORY_QUICK_HOLES) {
        const int32_t smallest = smallest_hole(memory, 0, true);
        if (size <= memory->holes[smallest].size) return;
        remove_hole(memory, smallest);
        if (smallest < at) --at;
    }
    memmove(&memory->holes[at + 1], &memory->holes[at],
            (size_t)(memory->n_holes - at) * sizeof(memory->holes[0]));
    memory->holes[at] = (struct memory_quick_hole){offset, size};
    ++memory->n_holes;
}

void memory_quick_release(struct memory_quick *memory, size_t offset, size_t size) {
    if (size == 0) return;
    int32_t i = memory->n_holes; // the hole above
    while (i > 0 && memory->holes[i - 1].offset > offset) {
        --i;
    }
    struct memory_quick_hole *below = i > 0 ? &memory->holes[i - 1] : NULL;
    const bool joins_below = below && below->offset + below->size == offset;
    if (offset + size == memory->end && memory->capacity == 0) {
        memory->end = joins_below ? below->offset : offset;
        memory->n_holes -= joins_below;
        return;
    }
    struct memory_quick_hole *above = i < memory->n_holes ? &memory->holes[i] : NULL;
    const bool joins_above = above && offset + size == above->offset;
    if (joins_below) {
        below->size += size + (joins_above ? above->size : 0);
        if (joins_above) remove_hole(memory, i);
    } else if (joins_above) {
        above->offset = offset;
        above->size += size;
    } else {
        add_hole(memory, i, offset, size);
    }
}
