// SPDX-License-Identifier: MIT
// Offline allocation around the peak. The blocks that live at a peak are packed without gaps, since
// only there every byte counts; then two sweeps, forward and backward in time, place the others by
// first or best fit, long-lived ones from the bottom and short-lived ones from the top, which keeps
// the holes of the latter together. A way that exceeds the limit is given up at once, and the next
// one is tried.

#include "alloc/memory_quick.h"
#include "alloc/memory_timeline.h"
#include "base/mem.h"

// How what lives at the peak is stacked, from the bottom.
enum layout { FIRST_TO_BEGIN, LARGEST, LAYOUTS };

// Blocks that live for at least `steps` go to the bottom, others to the top.
struct policy {
    int32_t steps;
    bool smallest; // hole that fits, else the outermost
};

enum { ALL_AT_TOP = INT32_MAX };

// The first suits transformers, U-Nets and samplers, the second mixtures of experts.
static const struct way {
    bool from_last; // peak, else from the first
    enum layout layout;
    struct policy policy;
} ways[] = {
    {true, FIRST_TO_BEGIN, {ALL_AT_TOP, false}},
    {false, LARGEST, {5, true}},
};

enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

struct outward {
    struct memory_block *blocks;
    const struct memory_timeline *timeline;
    struct memory_block *stack; // copies of what lives at the start; their `chunk` is the number
    int32_t n_stack;
    int32_t start; // event of the stack; -1: none
    size_t limit;  // as much may be used
    size_t needed; // is used
};

// --- the stack

static int64_t lifetime(const struct memory_block *block) {
    return (int64_t)block->last - block->first;
}

static bool begins_earlier(const struct memory_block *a, const struct memory_block *b) {
    return a->first != b->first ? a->first < b->first : a->last > b->last;
}

static bool is_larger(const struct memory_block *a, const struct memory_block *b) {
    return a->size > b->size;
}

static const memory_block_before orders[LAYOUTS] = {
    [FIRST_TO_BEGIN] = begins_earlier,
    [LARGEST] = is_larger,
};

// What lives after event `start`. Offsets mean nothing yet: they mark what has begun.
static bool collect(struct outward *plan, int32_t start) {
    const int32_t *events = plan->timeline->events;
    const size_t most = (size_t)plan->timeline->n_events / 2 + 1;
    if (!plan->stack) plan->stack = ggml_mem_alloc(most * sizeof(plan->stack[0]));
    if (!plan->stack) return false;
    for (int32_t i = 0; i <= start; ++i) {
        plan->blocks[events[i] < 0 ? ~events[i] : events[i]].offset = events[i] >= 0;
    }
    plan->n_stack = 0;
    for (int32_t i = 0; i <= start; ++i) {
        if (events[i] < 0 || plan->blocks[events[i]].offset == 0) continue;
        plan->stack[plan->n_stack] = plan->blocks[events[i]];
        plan->stack[plan->n_stack++].chunk = events[i];
    }
    plan->start = start;
    return true;
}

static bool stack_up(struct outward *plan, enum layout layout, int32_t start) {
    if (plan->start != start && !collect(plan, start)) return false;
    int32_t *order = memory_blocks_sorted(plan->stack, plan->n_stack, orders[layout]);
    size_t offset = 0;
    for (int32_t i = 0; order && i < plan->n_stack; ++i) {
        const struct memory_block *block = &plan->stack[order[i]];
        plan->blocks[block->chunk].offset = offset;
        offset += block->size;
    }
    ggml_mem_free(order);
    return order != NULL;
}

// --- sweeps

// From an event to the end, step 1, or to the beginning, step -1, where ends begin and beginnings
// end. false: it needs more than the limit.
static bool sweep_from(struct outward *plan, struct policy policy, int32_t from, int32_t step) {
    const struct memory_timeline *timeline = plan->timeline;
    const int32_t n = step > 0 ? timeline->n_events - from : from + 1;
    struct memory_quick memory;
    memory_quick_begin_full(&memory, 1, policy.smallest, timeline->most);
    for (int32_t i = 0; i < n; ++i) {
        const int32_t event = timeline->events[from + i * step];
        struct memory_block *block = &plan->blocks[event < 0 ? ~event : event];
        if ((event < 0) == (step > 0)) {
            memory_quick_release(&memory, block->offset, block->size);
        } else {
            const bool bottom = lifetime(block) >= policy.steps;
            block->offset = memory_quick_take(&memory, block->size, bottom);
            if (memory.peak > plan->limit) return false;
        }
    }
    if (memory.peak > plan->needed) plan->needed = memory.peak;
    return true;
}

// Within the limit. The longer sweep is first: most other peaks are there.
static bool plan_from(struct outward *plan, const struct way *way) {
    const struct memory_timeline *timeline = plan->timeline;
    const int32_t start = way->from_last ? timeline->last_peak : timeline->first_peak;
    const bool back_first = start > timeline->n_events / 2;
    plan->needed = 0;
    if (!stack_up(plan, way->layout, start)) return false;
    return (!back_first || sweep_from(plan, way->policy, start, -1)) &&
           sweep_from(plan, way->policy, start + 1, 1) &&
           (back_first || sweep_from(plan, way->policy, start, -1));
}

size_t memory_plan_outward(struct memory_block *blocks, const struct memory_timeline *timeline,
                           size_t good_enough) {
    struct outward plan = {
        .blocks = blocks, .timeline = timeline, .start = -1, .limit = good_enough};
    bool found = timeline->n_events == 0;
    for (int i = 0; i < N_WAYS && !found && timeline->most <= good_enough; ++i) {
        found = plan_from(&plan, &ways[i]);
    }
    ggml_mem_free(plan.stack);
    return found ? plan.needed : SIZE_MAX;
}
