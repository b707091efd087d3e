// SPDX-License-Identifier: MIT
// Offline allocation around the peak. The blocks that live at a peak are packed without gaps, since
// only there every byte counts; then two sweeps, forward and backward in time, place the others by
// first or best fit. A sweep that exceeds the limit rewinds a random number of steps and goes on
// with another policy; after enough failures, or once the budget of steps is spent, the limit is
// raised.
#include <string.h>

#include "alloc/memory_quick.h"
#include "alloc/memory_timeline.h"
#include "base/mem.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))

enum layout { LAST_TO_END, FIRST_TO_BEGIN, LARGEST, LONGEST, LAYOUTS };

// Which blocks go to the bottom: all that live for at least `steps`. Others go to the top.
struct policy {
    int32_t steps;   // TO_NEXT_PEAK: those that live until one comes near
    bool smallest;   // hole, else the outermost
    uint32_t chance; // percent of the blocks that go to either end and into either hole
};

enum { ALL_AT_TOP = INT32_MAX, TO_NEXT_PEAK = -1 };

// What suits transformers, U-Nets and mixtures of experts comes first. These are not tried again
// when they get stuck.
static const struct start {
    bool from_last; // peak, else from the first
    enum layout layout;
    struct policy policy;
} starts[] = {
    {false, LAST_TO_END, {3, false, 0}},  {true, FIRST_TO_BEGIN, {ALL_AT_TOP, false, 0}},
    {false, LARGEST, {5, true, 0}},       {false, LAST_TO_END, {ALL_AT_TOP, false, 0}},
    {false, LAST_TO_END, {0, true, 0}},   {true, FIRST_TO_BEGIN, {0, true, 0}},
    {true, FIRST_TO_BEGIN, {5, true, 0}}, {false, LONGEST, {5, true, 0}},
};

enum {
    N_STARTS = sizeof(starts) / sizeof(starts[0]),
    ROUNDS = 12, // of search, each content with a little more than the one before
    PLANS_IN_ROUND = 8,
    FEW_FAILURES = 20, // at one place
    EVENTS_PER_FAILURE = 1024,
    MOST_BACK = 9, // logarithm of how many strides a sweep goes back
    STRIDE = 8,    // events
};

struct outward {
    struct memory_block *blocks;
    const struct memory_timeline *timeline;
    struct memory_block *stack; // copies of what lives at the start; their `chunk` is the number
    int32_t n_stack;
    int32_t start;              // event of the stack; -1: none
    struct memory_quick *saved; // as it was at each STRIDE of the sweep; NULL: no way back
    int32_t *next_peak;         // time, by event, as sweeps go to the end and to the beginning
    int32_t *previous_peak;
    size_t *offsets;       // of the best plan so far, by event
    size_t best;           // a plan that does not need less is given up
    size_t limit;          // as much may be used now
    size_t needed;         // is used
    int32_t most_failures; // at one place
    int64_t budget;        // events
    uint32_t seed;
};

// Where a sweep is.
struct sweep {
    struct memory_quick memory;
    struct policy policy;
    int32_t from, step; // event i is from + i * step
    int32_t n;
    int32_t i;
    int32_t furthest; // i at which it got stuck
    int32_t failures; // there
    size_t least;     // bytes that would have helped there
};

static uint32_t next_random(struct outward *plan, uint32_t limit) {
    plan->seed = plan->seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)plan->seed * limit) >> 32);
}

// --- the stack

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

static const memory_block_before orders[LAYOUTS] = {
    [LAST_TO_END] = ends_later,
    [FIRST_TO_BEGIN] = begins_earlier,
    [LARGEST] = is_larger,
    [LONGEST] = lives_longer,
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
    plan->budget -= start;
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

// Peaks are where at most an eighth is free.
static void find_peaks(struct outward *plan) {
    const struct memory_timeline *timeline = plan->timeline;
    const size_t near = timeline->most - timeline->most / 8;
    size_t live = 0;
    int32_t peak = INT32_MIN;
    for (int32_t i = 0; i < timeline->n_events; ++i) {
        const int32_t event = timeline->events[i];
        const struct memory_block *block = &plan->blocks[event < 0 ? ~event : event];
        if (live >= near) peak = event < 0 ? block->last : block->first;
        plan->previous_peak[i] = peak;
        live += event < 0 ? -block->size : block->size;
    }
    peak = INT32_MAX;
    for (int32_t i = timeline->n_events - 1; i >= 0; --i) {
        const int32_t event = timeline->events[i];
        const struct memory_block *block = &plan->blocks[event < 0 ? ~event : event];
        if (live >= near) peak = event < 0 ? block->last : block->first;
        plan->next_peak[i] = peak;
        live -= event < 0 ? -block->size : block->size;
    }
}

static struct policy random_policy(struct outward *plan) {
    static const int32_t steps[] = {0, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, ALL_AT_TOP};
    static const uint32_t chances[] = {0, 0, 0, 10, 10, 30, 30, 100};
    const uint32_t n_steps = sizeof(steps) / sizeof(steps[0]);
    const uint32_t n_chances = sizeof(chances) / sizeof(chances[0]);
    return (struct policy){
        .steps = next_random(plan, 2) ? TO_NEXT_PEAK : steps[next_random(plan, n_steps)],
        .smallest = next_random(plan, 2),
        .chance = chances[next_random(plan, n_chances)],
    };
}

static bool is_for_bottom(const struct outward *plan, const struct sweep *sweep, int32_t at,
                          const struct memory_block *block) {
    if (sweep->policy.steps != TO_NEXT_PEAK) return lifetime(block) >= sweep->policy.steps;
    return sweep->step > 0 ? block->last >= plan->next_peak[at]
                           : block->first <= plan->previous_peak[at];
}

static void place(struct outward *plan, struct sweep *sweep, int32_t at,
                  struct memory_block *block) {
    bool bottom;
    if (sweep->policy.chance > 0 && next_random(plan, 100) < sweep->policy.chance) {
        bottom = next_random(plan, 2);
        sweep->memory.smallest = next_random(plan, 2);
    } else {
        bottom = is_for_bottom(plan, sweep, at, block);
        sweep->memory.smallest = sweep->policy.smallest;
    }
    block->offset = memory_quick_take(&sweep->memory, block->size, bottom);
}

// Holes that there are not are not copied.
static void copy(struct memory_quick *to, const struct memory_quick *from) {
    const size_t bytes = (size_t)from->n_holes * sizeof(from->holes[0]);
    memcpy(to, from, offsetof(struct memory_quick, holes) + bytes);
}

// After a block did not fit. false: the plan is no better than the best.
static bool go_back(struct outward *plan, struct sweep *sweep) {
    if (sweep->i > sweep->furthest) {
        sweep->furthest = sweep->i;
        sweep->failures = 0;
        sweep->least = SIZE_MAX;
    }
    if (sweep->memory.peak < sweep->least) sweep->least = sweep->memory.peak;
    if (++sweep->failures > plan->most_failures || plan->budget < 0) {
        if (sweep->least >= plan->best) return false;
        plan->limit = sweep->least;
        if (plan->budget < 0) plan->limit += plan->timeline->most / 64; // soon no limit
        sweep->failures = 0;
        sweep->least = SIZE_MAX;
    }
    uint32_t most = 0; // logarithm
    while (most < MOST_BACK && 1 << most <= sweep->failures) {
        ++most;
    }
    const int32_t back = (int32_t)next_random(plan, 1u << next_random(plan, most + 1));
    const int32_t stride = sweep->i / STRIDE > back ? sweep->i / STRIDE - back : 0;
    copy(&sweep->memory, &plan->saved[stride]);
    sweep->i = stride * STRIDE;
    sweep->policy = random_policy(plan);
    return true;
}

// From an event to the end, step 1, or to the beginning, step -1, where ends begin and beginnings
// end. Raises the limit where it must.
static bool sweep_from(struct outward *plan, struct policy policy, int32_t from, int32_t step) {
    const struct memory_timeline *timeline = plan->timeline;
    struct sweep sweep = {.policy = policy, .from = from, .step = step, .furthest = -1};
    sweep.n = step > 0 ? timeline->n_events - from : from + 1;
    memory_quick_begin_full(&sweep.memory, 1, policy.smallest, timeline->most);
    while (sweep.i < sweep.n) {
        if (plan->saved && sweep.i % STRIDE == 0) {
            copy(&plan->saved[sweep.i / STRIDE], &sweep.memory);
        }
        const int32_t at = from + sweep.i * step, event = timeline->events[at];
        struct memory_block *block = &plan->blocks[event < 0 ? ~event : event];
        --plan->budget;
        if ((event < 0) == (step > 0)) {
            memory_quick_release(&sweep.memory, block->offset, block->size);
        } else {
            place(plan, &sweep, at, block);
            if (sweep.memory.peak > plan->limit) {
                if (!go_back(plan, &sweep)) return false;
                continue;
            }
        }
        ++sweep.i;
    }
    if (sweep.memory.peak > plan->needed) plan->needed = sweep.memory.peak;
    return true;
}

// --- plans

// Within the limit, or what that has to become. The longer sweep is first: most other peaks are
// there.
static bool plan_from(struct outward *plan, int32_t start, enum layout layout, struct policy policy,
                      size_t limit) {
    const bool back_first = start > plan->timeline->n_events / 2;
    plan->limit = limit;
    plan->needed = 0;
    if (!stack_up(plan, layout, start)) return false;
    return (!back_first || sweep_from(plan, policy, start, -1)) &&
           sweep_from(plan, policy, start + 1, 1) &&
           (back_first || sweep_from(plan, policy, start, -1));
}

static bool plan_usually(struct outward *plan, size_t good_enough) {
    bool done = false;
    plan->best = good_enough + 1;
    for (int i = 0; i < N_STARTS && !done; ++i) {
        const int32_t start =
            starts[i].from_last ? plan->timeline->last_peak : plan->timeline->first_peak;
        done = plan_from(plan, start, starts[i].layout, starts[i].policy, good_enough);
    }
    return done;
}

static void keep(struct outward *plan) {
    plan->best = plan->needed;
    for (int32_t i = 0; i < plan->timeline->n_events; ++i) {
        const int32_t event = plan->timeline->events[i];
        if (event >= 0) plan->offsets[i] = plan->blocks[event].offset;
    }
}

static void use_best(struct outward *plan) {
    plan->needed = plan->best;
    for (int32_t i = 0; i < plan->timeline->n_events; ++i) {
        const int32_t event = plan->timeline->events[i];
        if (event >= 0) plan->blocks[event].offset = plan->offsets[i];
    }
}

// What can't be done with the bytes that are good enough is tried with some more, until the budget
// is used up. false if nothing was found within the limit.
static bool search(struct outward *plan, size_t good_enough, size_t limit) {
    const struct memory_timeline *timeline = plan->timeline;
    size_t enough = good_enough;
    plan->best = limit + 1;
    for (int i = 0; i < ROUNDS * PLANS_IN_ROUND && plan->best > enough && plan->budget >= 0; ++i) {
        const int round = i / PLANS_IN_ROUND;
        enough = MIN(good_enough + timeline->most / 200 * (size_t)round, limit);
        plan->most_failures = (FEW_FAILURES + timeline->n_events / EVENTS_PER_FAILURE)
                              << MIN(round, 3);
        const int32_t start = next_random(plan, 2) ? timeline->last_peak : timeline->first_peak;
        const enum layout layout = (enum layout)next_random(plan, LAYOUTS);
        if (plan_from(plan, start, layout, random_policy(plan), enough)) keep(plan);
    }
    if (plan->best > limit) return false;
    use_best(plan);
    return true;
}

static bool prepare_search(struct outward *plan) {
    const size_t n_events = (size_t)plan->timeline->n_events;
    plan->saved = ggml_mem_alloc((n_events / STRIDE + 2) * sizeof(plan->saved[0]));
    plan->next_peak = ggml_mem_alloc(n_events * sizeof(plan->next_peak[0]));
    plan->previous_peak = ggml_mem_alloc(n_events * sizeof(plan->previous_peak[0]));
    plan->offsets = ggml_mem_alloc(n_events * sizeof(plan->offsets[0]));
    if (!plan->saved || !plan->next_peak || !plan->previous_peak || !plan->offsets) return false;
    find_peaks(plan);
    plan->budget = (1 << 19) + 32 * (int64_t)n_events;
    return true;
}

size_t memory_plan_outward(struct memory_block *blocks, const struct memory_timeline *timeline,
                           size_t good_enough, size_t limit, bool thorough) {
    struct outward plan = {.blocks = blocks, .timeline = timeline, .start = -1};
    if (timeline->n_events == 0) return 0;
    good_enough = MIN(good_enough, limit);
    const bool found = timeline->most <= good_enough &&
                       (plan_usually(&plan, good_enough) ||
                        (thorough && prepare_search(&plan) && search(&plan, good_enough, limit)));
    ggml_mem_free(plan.stack);
    ggml_mem_free(plan.saved);
    ggml_mem_free(plan.next_peak);
    ggml_mem_free(plan.previous_peak);
    ggml_mem_free(plan.offsets);
    return found ? plan.needed : SIZE_MAX;
}
