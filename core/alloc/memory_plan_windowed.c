// SPDX-License-Identifier: MIT
// Planning by windows. A graph of repeated layers has a peak in each layer and little alive between
// layers: the timeline is cut there, and each window is planned by itself. Blocks that live across
// a cut lie at the bottom, or anywhere if they live at no peak.
#include <stdlib.h>
#include <string.h>

#include "alloc/memory_timeline.h"
#include "base/mem.h"

struct parts {
    struct memory_block *blocks;
    const struct memory_timeline *timeline;
    int32_t *cuts;                // events behind which there is one
    int32_t *part_of;             // by block; from n_parts on: one of the kinds below
    int32_t *begins;              // part i begins at begins[i + 1] of `numbers`
    int32_t *numbers;             // of blocks, by part
    int32_t *live;                // numbers of blocks, in any order
    int32_t *place;               // of a block there; before: the event at which it begins
    struct memory_block *members; // copies of one part
    int32_t n;
    int32_t n_parts;
};

// Blocks that belong to no part, added to n_parts.
enum kind {
    ACROSS, // cuts, and alive when much is
    LATE,   // the same, but at no such time: placed when all others are
    EMPTY,
    KINDS
};

static size_t change(const struct parts *parts, int32_t i) {
    const int32_t event = parts->timeline->events[i];
    return event < 0 ? -parts->blocks[~event].size : parts->blocks[event].size;
}

// Cuts where the least lives between times at which more than `little` does.
static void find_cuts(struct parts *parts, size_t little) {
    size_t live = 0, least = 0; // least: since more lived, SIZE_MAX: more does
    int32_t least_at = -1;
    parts->n_parts = 1;
    for (int32_t i = 0; i < parts->timeline->n_events; ++i) {
        live += change(parts, i);
        if (live > little) {
            if (least_at >= 0) parts->cuts[parts->n_parts++ - 1] = least_at;
            least = SIZE_MAX;
            least_at = -1;
        } else if (live < least) {
            least = live;
            least_at = i;
        }
    }
}

static void assign(struct parts *parts, size_t much) {
    int32_t part = 0, at_much = -1; // event
    size_t live = 0;
    for (int32_t i = 0; i < parts->n; ++i) {
        parts->part_of[i] = parts->n_parts + EMPTY;
    }
    for (int32_t i = 0; i < parts->timeline->n_events; ++i) {
        const int32_t event = parts->timeline->events[i];
        live += change(parts, i);
        if (live > much) at_much = i;
        if (event >= 0) {
            parts->part_of[event] = part;
            parts->place[event] = i;
        } else if (parts->part_of[~event] != part) {
            const bool late = at_much < parts->place[~event];
            parts->part_of[~event] = parts->n_parts + (late ? LATE : ACROSS);
        }
        if (part + 1 < parts->n_parts && parts->cuts[part] == i) ++part;
    }
}

// The most of what lives across cuts, at once, and of the others.
static void find_most(const struct parts *parts, size_t *out_across, size_t *out_others) {
    size_t live[2] = {0, 0}, most[2] = {0, 0};
    for (int32_t i = 0; i < parts->timeline->n_events; ++i) {
        const int32_t event = parts->timeline->events[i];
        const int32_t part = parts->part_of[event < 0 ? ~event : event];
        const bool across = part == parts->n_parts + ACROSS;
        if (part == parts->n_parts + LATE) continue;
        live[across] += change(parts, i);
        if (live[across] > most[across]) most[across] = live[across];
    }
    *out_across = most[true];
    *out_others = most[false];
}

static void sort(struct parts *parts) {
    memset(parts->begins, 0, ((size_t)parts->n_parts + KINDS + 1) * sizeof(parts->begins[0]));
    for (int32_t i = 0; i < parts->n; ++i) {
        ++parts->begins[parts->part_of[i] + 1];
    }
    for (int32_t part = 0; part < parts->n_parts + KINDS; ++part) {
        parts->begins[part + 1] += parts->begins[part];
    }
    for (int32_t i = parts->n - 1; i >= 0; --i) {
        parts->numbers[--parts->begins[parts->part_of[i] + 1]] = i;
    }
}

// Returns the bytes it needs above `base`.
static size_t plan_part(struct parts *parts, int32_t part, size_t base, size_t good_enough) {
    const int32_t *numbers = parts->numbers + parts->begins[part + 1];
    const int32_t n = parts->begins[part + 2] - parts->begins[part + 1];
    struct memory_timeline timeline;
    for (int32_t i = 0; i < n; ++i) {
        parts->members[i] = parts->blocks[numbers[i]];
    }
    if (!memory_timeline_make(parts->members, n, &timeline)) return SIZE_MAX;
    const size_t needed = memory_plan_around_peak(parts->members, &timeline, good_enough);
    memory_timeline_free(&timeline);
    for (int32_t i = 0; i < n; ++i) {
        parts->blocks[numbers[i]].offset = base + parts->members[i].offset;
    }
    return needed;
}

// --- what comes last

static int compare_offsets(const void *a, const void *b) {
    const struct memory_block *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

// What is placed and meets the block that begins with event `at`.
static int32_t collect_met(struct parts *parts, int32_t at, int32_t n_live) {
    const int32_t *events = parts->timeline->events;
    int32_t n = 0;
    for (int32_t i = 0; i < n_live; ++i) {
        parts->members[n++] = parts->blocks[parts->live[i]];
    }
    for (int32_t i = at + 1; events[i] != ~events[at]; ++i) {
        if (events[i] < 0 || parts->part_of[events[i]] == parts->n_parts + LATE) continue;
        parts->members[n++] = parts->blocks[events[i]];
    }
    return n;
}

// Returns the end of the block in the lowest hole that holds it.
static size_t place_late(struct parts *parts, int32_t at, int32_t n_live, int64_t *budget) {
    struct memory_block *block = &parts->blocks[parts->timeline->events[at]];
    const int32_t n = collect_met(parts, at, n_live);
    *budget -= n;
    qsort(parts->members, (size_t)n, sizeof(parts->members[0]), compare_offsets);
    block->offset = 0;
    for (int32_t i = 0; i < n; ++i) {
        const struct memory_block *met = &parts->members[i];
        if (met->offset >= block->offset && met->offset - block->offset >= block->size) break;
        if (met->offset + met->size > block->offset) block->offset = met->offset + met->size;
    }
    return block->offset + block->size;
}

// Returns the bytes that are needed, SIZE_MAX if that takes too long.
static size_t place_all_late(struct parts *parts) {
    int64_t budget = 65536 + 64 * (int64_t)parts->n;
    size_t needed = 0;
    int32_t n_live = 0;
    for (int32_t i = 0; i < parts->timeline->n_events; ++i) {
        const int32_t event = parts->timeline->events[i];
        if (event < 0) {
            const int32_t moved = parts->live[--n_live];
            parts->live[parts->place[~event]] = moved;
            parts->place[moved] = parts->place[~event];
            continue;
        }
        if (parts->part_of[event] == parts->n_parts + LATE) {
            const size_t end = place_late(parts, i, n_live, &budget);
            if (end > needed) needed = end;
            if (budget < 0) return SIZE_MAX;
        }
        parts->place[event] = n_live;
        parts->live[n_live++] = event;
    }
    return needed;
}

// --- all

static size_t plan_all(struct parts *parts, size_t little, size_t good_enough) {
    size_t most_across, most_others, needed = 0;
    find_cuts(parts, little);
    if (parts->n_parts == 1) return SIZE_MAX;
    assign(parts, parts->timeline->most / 4 * 3);
    find_most(parts, &most_across, &most_others);
    if (most_across > good_enough || most_others > good_enough - most_across) return SIZE_MAX;
    sort(parts);
    const size_t base = plan_part(parts, parts->n_parts + ACROSS, 0, good_enough - most_others);
    for (int32_t i = 0; i < parts->n_parts && base != SIZE_MAX && needed != SIZE_MAX; ++i) {
        const size_t part_needs = plan_part(parts, i, base, good_enough - base);
        if (part_needs > needed) needed = part_needs;
    }
    if (base == SIZE_MAX || needed == SIZE_MAX) return SIZE_MAX;
    const size_t late = place_all_late(parts);
    if (late > good_enough) return SIZE_MAX;
    return base + needed > late ? base + needed : late;
}

size_t memory_plan_windowed(struct memory_block *blocks, int32_t n,
                            const struct memory_timeline *timeline, size_t good_enough) {
    enum { LARGEST_SHARE = 4, SMALLEST_SHARE = 64, ARRAYS = 6 };
    struct parts parts = {.blocks = blocks, .n = n, .timeline = timeline};
    const size_t room = (size_t)n + KINDS + 2;
    int32_t *numbers = ggml_mem_alloc(ARRAYS * room * sizeof(numbers[0]));
    parts.members = ggml_mem_alloc(room * sizeof(parts.members[0]));
    size_t needed = SIZE_MAX;
    if (numbers && parts.members) {
        parts.cuts = numbers;
        parts.part_of = numbers + room;
        parts.begins = numbers + 2 * room;
        parts.numbers = numbers + 3 * room;
        parts.live = numbers + 4 * room;
        parts.place = numbers + 5 * room;
    }
    for (size_t share = SMALLEST_SHARE; parts.cuts && share >= LARGEST_SHARE && needed == SIZE_MAX;
         share /= 4) {
        needed = plan_all(&parts, timeline->most / share, good_enough);
    }
    ggml_mem_free(numbers);
    ggml_mem_free(parts.members);
    return needed;
}
