// SPDX-License-Identifier: MIT
// Planning outward from a peak. Peaks are where a gap can't be afforded, and there is none where
// the plan begins; elsewhere there is room. Graphs whose layers repeat have as many peaks, so the
// way matters all the same: which blocks lie at the bottom, and in which hole.
#include "base/mem.h"
#include "graph/memory_quick.h"
#include "graph/memory_timeline.h"

enum layout { LAST_TO_END, FIRST_TO_BEGIN, LARGEST, LONGEST };

// Blocks that live for at least `steps` go to the bottom, others to the top.
struct way {
    bool from_last; // peak, else from the first
    bool smallest;  // hole, else the outermost
    enum layout layout;
    int32_t steps; // BY_CHANCE: either end
};

enum { ALL_AT_TOP = INT32_MAX, BY_CHANCE = -1, CHANCES = 4 };

// What suits transformers, U-Nets and mixtures of experts comes first.
static const struct way ways[] = {
    {false, false, LAST_TO_END, 3},
    {true, false, FIRST_TO_BEGIN, ALL_AT_TOP},
    {false, true, LARGEST, 5},
    {false, false, LAST_TO_END, ALL_AT_TOP},
    {false, true, LAST_TO_END, 0},
    {true, true, FIRST_TO_BEGIN, 0},
    {true, true, FIRST_TO_BEGIN, 5},
    {false, true, LONGEST, 5},
    {false, false, LONGEST, 10},
    {true, false, LONGEST, 3},
    {true, true, LARGEST, 5},
    {false, true, LARGEST, ALL_AT_TOP},
    {false, true, LAST_TO_END, BY_CHANCE},
    {true, true, FIRST_TO_BEGIN, BY_CHANCE},
    {false, false, LAST_TO_END, BY_CHANCE},
    {true, false, FIRST_TO_BEGIN, BY_CHANCE},
};

enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

// Copies of the blocks that live at a peak; their `chunk` is the number.
struct stack {
    struct memory_block *blocks;
    int32_t n; // -1: not collected yet
};

struct outward {
    struct memory_block *blocks;
    const struct memory_timeline *timeline;
    struct stack stacks[2]; // at the first and the last peak
    size_t good_enough;
    uint32_t seed;
};

static int64_t lifetime(const struct memory_block *block) {
    return (int64_t)block->last - block->first;
}

static bool ends_later(const struct memory_block *a, const struct memory_block *b) {
    return a->last != b->last ? a->last > b->last : a->first < b->first;
}

static bool begins_earlier(const struct memory_block *a, const struct memory_block *b) {
    return a->first != b->first ? a->first < b->first : a->last > b->last;
}

static bool is_larger(const struct memory_block *a, const struct memory_block *b) {
    return a->size > b->size;
}

static bool lives_longer(const struct memory_block *a, const struct memory_block *b) {
    return lifetime(a) > lifetime(b);
}

static const memory_block_before orders[] = {
    [LAST_TO_END] = ends_later,
    [FIRST_TO_BEGIN] = begins_earlier,
    [LARGEST] = is_larger,
    [LONGEST] = lives_longer,
};

// What lives after event `peak`. Offsets mean nothing yet: they mark what has begun.
static bool collect(struct outward *plan, int32_t peak, struct stack *stack) {
    const int32_t *events = plan->timeline->events;
    const size_t most = (size_t)plan->timeline->n_events / 2 + 1;
    stack->blocks = ggml_mem_alloc(most * sizeof(stack->blocks[0]));
    if (!stack->blocks) return false;
    for (int32_t i = 0; i <= peak; ++i) {
        plan->blocks[events[i] < 0 ? ~events[i] : events[i]].offset = events[i] >= 0;
    }
    stack->n = 0;
    for (int32_t i = 0; i <= peak; ++i) {
        if (events[i] < 0 || plan->blocks[events[i]].offset == 0) continue;
        stack->blocks[stack->n] = plan->blocks[events[i]];
        stack->blocks[stack->n++].chunk = events[i];
    }
    return true;
}

static bool stack_up(struct outward *plan, const struct way *way, int32_t peak) {
    struct stack *stack = &plan->stacks[way->from_last];
    if (stack->n < 0 && !collect(plan, peak, stack)) return false;
    int32_t *order = memory_blocks_sorted(stack->blocks, stack->n, orders[way->layout]);
    size_t offset = 0;
    for (int32_t i = 0; order && i < stack->n; ++i) {
        const struct memory_block *block = &stack->blocks[order[i]];
        plan->blocks[block->chunk].offset = offset;
        offset += block->size;
    }
    ggml_mem_free(order);
    return order != NULL;
}

static int32_t steps_of(struct outward *plan, const struct way *way,
                        const struct memory_block *block) {
    if (way->steps == BY_CHANCE) {
        plan->seed = plan->seed * 1664525u + 1013904223u;
        return plan->seed >> 31 ? INT32_MAX : 0;
    }
    const int64_t steps = lifetime(block);
    return steps < INT32_MAX ? (int32_t)steps : INT32_MAX - 1;
}

// Goes from event `from` to the end, step 1, or to the beginning, step -1, where ends begin and
// beginnings end. Answers the bytes needed, or more than are good enough as soon as that is known.
static size_t sweep(struct outward *plan, const struct way *way, int32_t from, int32_t step) {
    const struct memory_timeline *timeline = plan->timeline;
    struct memory_quick memory;
    memory_quick_begin_full(&memory, way->steps == BY_CHANCE ? 1 : way->steps, way->smallest,
                            timeline->most);
    for (int32_t i = from; i >= 0 && i < timeline->n_events; i += step) {
        const int32_t event = timeline->events[i];
        struct memory_block *block = &plan->blocks[event < 0 ? ~event : event];
        if ((event < 0) == (step > 0)) {
            memory_quick_release(&memory, block->offset, block->size);
            continue;
        }
        block->offset = memory_quick_take(&memory, block->size, steps_of(plan, way, block));
        if (memory.peak > plan->good_enough) break;
    }
    return memory.peak;
}

static size_t try_way(struct outward *plan, const struct way *way) {
    const struct memory_timeline *timeline = plan->timeline;
    const int32_t peak = way->from_last ? timeline->last_peak : timeline->first_peak;
    if (!stack_up(plan, way, peak)) return SIZE_MAX;
    const size_t before = way->from_last ? sweep(plan, way, peak, -1) : 0;
    if (before > plan->good_enough) return SIZE_MAX; // most other peaks were there
    const size_t after = sweep(plan, way, peak + 1, 1);
    if (after > plan->good_enough) return SIZE_MAX;
    const size_t rest = way->from_last ? before : sweep(plan, way, peak, -1);
    if (rest > plan->good_enough) return SIZE_MAX;
    return rest > after ? rest : after;
}

size_t memory_plan_outward(struct memory_block *blocks, const struct memory_timeline *timeline,
                           size_t good_enough) {
    struct outward plan = {.blocks = blocks, .timeline = timeline, .good_enough = good_enough};
    size_t needed = SIZE_MAX;
    if (timeline->n_events == 0) return 0;
    plan.stacks[0].n = plan.stacks[1].n = -1;
    for (int i = 0; i < N_WAYS && needed == SIZE_MAX; ++i) {
        const int tries = ways[i].steps == BY_CHANCE ? CHANCES : 1;
        for (int k = 0; k < tries && needed == SIZE_MAX; ++k) {
            needed = try_way(&plan, &ways[i]);
        }
    }
    ggml_mem_free(plan.stacks[0].blocks);
    ggml_mem_free(plan.stacks[1].blocks);
    return needed;
}
