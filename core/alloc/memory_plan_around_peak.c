// SPDX-License-Identifier: MIT
// Offline allocation around the peak. The blocks that live at a peak are packed without gaps, in
// the order in which they begin, since only there every byte counts; then two sweeps, forward and
// backward in time, place the others by last fit, as close to the top of the stack as free ranges
// allow. O(events), times the ranges that are free at once. A sweep that exceeds the limit ends the
// try. It suits graphs with one large peak, or many equal ones: transformers and U-Nets.
#include "alloc/free_list.h"
#include "alloc/memory_timeline.h"

struct around_peak {
    struct memory_block *blocks;
    const struct memory_timeline *timeline;
    size_t limit;  // as much may be used
    size_t needed; // is used
};

// Stacks what lives after an event, in the order in which it begins. Offsets first only mark what
// has begun and not ended.
static void stack_up(const struct around_peak *plan, int32_t peak) {
    const int32_t *events = plan->timeline->events;
    size_t end = 0;
    for (int32_t i = 0; i <= peak; ++i) {
        plan->blocks[events[i] < 0 ? ~events[i] : events[i]].offset = events[i] >= 0;
    }
    for (int32_t i = 0; i <= peak; ++i) {
        if (events[i] < 0 || plan->blocks[events[i]].offset == 0) continue;
        plan->blocks[events[i]].offset = end;
        end += plan->blocks[events[i]].size;
    }
}

// From an event to the end, step 1, or to the beginning, step -1, where ends begin and beginnings
// end. false: it needs more than the limit.
static bool sweep_from(struct around_peak *plan, int32_t from, int32_t step) {
    const struct memory_timeline *timeline = plan->timeline;
    const int32_t n = step > 0 ? timeline->n_events - from : from + 1;
    struct free_list memory;
    free_list_begin(&memory, timeline->most);
    for (int32_t i = 0; i < n; ++i) {
        const int32_t event = timeline->events[from + i * step];
        struct memory_block *block = &plan->blocks[event < 0 ? ~event : event];
        if ((event < 0) == (step > 0)) {
            free_list_release(&memory, block->offset, block->size);
        } else {
            block->offset = free_list_take(&memory, block->size, false, plan->limit);
            if (block->offset == SIZE_MAX) return false;
        }
    }
    if (memory.end > plan->needed) plan->needed = memory.end;
    return true;
}

// The sweeps don't meet: what lives at the peak lies below both.
size_t memory_plan_around_peak(struct memory_block *blocks, const struct memory_timeline *timeline,
                               size_t good_enough) {
    struct around_peak plan = {.blocks = blocks, .timeline = timeline, .limit = good_enough};
    const int32_t peak = timeline->last_peak;
    if (timeline->n_events == 0) return 0;
    if (timeline->most > good_enough) return SIZE_MAX;
    stack_up(&plan, peak);
    return sweep_from(&plan, peak + 1, 1) && sweep_from(&plan, peak, -1) ? plan.needed : SIZE_MAX;
}
