// SPDX-License-Identifier: MIT
// Planning in parts. A graph that does the same several times over has as many peaks and between
// them times at which little lives: the peaks have nothing to do with each other, and what lives
// across the cuts is out of the way at the bottom.
#include <string.h>

#include "base/mem.h"
#include "graph/memory_timeline.h"

struct parts {
    struct memory_block *blocks;
    const struct memory_timeline *timeline;
    int32_t *cuts;    // events behind which there is one
    int32_t *part_of; // by block; n_parts: it lives across a cut; above: it has no bytes
    int32_t *begins;  // part i begins at begins[i + 1] of `numbers`
    int32_t *numbers; // of blocks, by part
    struct memory_block *members; // copies of one part
    int32_t n;
    int32_t n_parts;
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

static void assign(struct parts *parts) {
    int32_t part = 0;
    for (int32_t i = 0; i < parts->n; ++i) {
        parts->part_of[i] = parts->n_parts + 1;
    }
    for (int32_t i = 0; i < parts->timeline->n_events; ++i) {
        const int32_t event = parts->timeline->events[i];
        if (event >= 0) {
            parts->part_of[event] = part;
        } else if (parts->part_of[~event] != part) {
            parts->part_of[~event] = parts->n_parts;
        }
        if (part + 1 < parts->n_parts && parts->cuts[part] == i) ++part;
    }
}

// The most of what lives across cuts, at once, and of the others.
static void find_most(const struct parts *parts, size_t *out_across, size_t *out_others) {
    size_t live[2] = {0, 0}, most[2] = {0, 0};
    for (int32_t i = 0; i < parts->timeline->n_events; ++i) {
        const int32_t event = parts->timeline->events[i];
        const bool across = parts->part_of[event < 0 ? ~event : event] == parts->n_parts;
        live[across] += change(parts, i);
        if (live[across] > most[across]) most[across] = live[across];
    }
    *out_across = most[true];
    *out_others = most[false];
}

static void sort(struct parts *parts) {
    memset(parts->begins, 0, ((size_t)parts->n_parts + 3) * sizeof(parts->begins[0]));
    for (int32_t i = 0; i < parts->n; ++i) {
        ++parts->begins[parts->part_of[i] + 1];
    }
    for (int32_t part = 0; part <= parts->n_parts + 1; ++part) {
        parts->begins[part + 1] += parts->begins[part];
    }
    for (int32_t i = parts->n - 1; i >= 0; --i) {
        parts->numbers[--parts->begins[parts->part_of[i] + 1]] = i;
    }
}

// Answers the bytes it needs above `base`.
static size_t plan_part(struct parts *parts, int32_t part, size_t base, size_t good_enough) {
    const int32_t *numbers = parts->numbers + parts->begins[part + 1];
    const int32_t n = parts->begins[part + 2] - parts->begins[part + 1];
    struct memory_timeline timeline;
    for (int32_t i = 0; i < n; ++i) {
        parts->members[i] = parts->blocks[numbers[i]];
    }
    if (!memory_timeline_make(parts->members, n, &timeline)) return SIZE_MAX;
    const size_t needed =
        memory_plan_outward(parts->members, &timeline, good_enough, good_enough, true);
    memory_timeline_free(&timeline);
    for (int32_t i = 0; i < n; ++i) {
        parts->blocks[numbers[i]].offset = base + parts->members[i].offset;
    }
    return needed;
}

static size_t plan_all(struct parts *parts, size_t little, size_t good_enough) {
    size_t most_across, most_others, needed = 0;
    find_cuts(parts, little);
    if (parts->n_parts == 1) return SIZE_MAX;
    assign(parts);
    find_most(parts, &most_across, &most_others);
    if (most_across > good_enough || most_others > good_enough - most_across) return SIZE_MAX;
    sort(parts);
    const size_t base = plan_part(parts, parts->n_parts, 0, good_enough - most_others);
    for (int32_t i = 0; i < parts->n_parts && base != SIZE_MAX && needed != SIZE_MAX; ++i) {
        const size_t part_needs = plan_part(parts, i, base, good_enough - base);
        if (part_needs > needed) needed = part_needs;
    }
    return base == SIZE_MAX || needed == SIZE_MAX ? SIZE_MAX : base + needed;
}

size_t memory_plan_parts(struct memory_block *blocks, int32_t n,
                         const struct memory_timeline *timeline, size_t good_enough) {
    enum { LARGEST_SHARE = 4, SMALLEST_SHARE = 64 };
    struct parts parts = {.blocks = blocks, .n = n, .timeline = timeline};
    const size_t bytes = ((size_t)n + 4) * sizeof(int32_t);
    parts.cuts = ggml_mem_alloc(bytes);
    parts.part_of = ggml_mem_alloc(bytes);
    parts.begins = ggml_mem_alloc(bytes);
    parts.numbers = ggml_mem_alloc(bytes);
    parts.members = ggml_mem_alloc(((size_t)n + 1) * sizeof(parts.members[0]));
    size_t needed = SIZE_MAX;
    if (parts.cuts && parts.part_of && parts.begins && parts.numbers && parts.members) {
        for (size_t share = SMALLEST_SHARE; share >= LARGEST_SHARE && needed == SIZE_MAX;
             share /= 4) {
            needed = plan_all(&parts, timeline->most / share, good_enough);
        }
    }
    ggml_mem_free(parts.cuts);
    ggml_mem_free(parts.part_of);
    ggml_mem_free(parts.begins);
    ggml_mem_free(parts.numbers);
    ggml_mem_free(parts.members);
    return needed;
}
