// SPDX-License-Identifier: MIT
// Waiting for a message of the other process. To sleep and be woken takes longer than a short graph
// does, so where the last messages came soon, the next one is looked for a while first. The while
// is short: on busy processors, whoever looks may keep the other side from sending.
#ifndef GGML_ISOLATE_WAIT_H
#define GGML_ISOLATE_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
    WAIT_LOOK_NS = 50000, // longest to look, and what counts as soon
    WAIT_HABIT = 2,       // messages in a row that must have come soon
};

// Of one side. Zero-initialised: has learnt nothing.
struct wait_habit {
    int n_soon;       // messages in a row, up to WAIT_HABIT
    int n_processors; // that this process may use, 0: not asked yet
};

// Processors that this process may use. [any-thread]
int wait_count_processors(void);

static inline int64_t wait_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Whether to look before sleeping. On one processor the other side can't run meanwhile.
static inline bool wait_looks(struct wait_habit *habit) {
    if (habit->n_processors == 0) habit->n_processors = wait_count_processors();
    return habit->n_soon == WAIT_HABIT && habit->n_processors > 1;
}

// A message came after so long.
static inline void wait_learn(struct wait_habit *habit, int64_t waited_ns) {
    if (waited_ns > WAIT_LOOK_NS)
        habit->n_soon = 0;
    else if (habit->n_soon < WAIT_HABIT)
        ++habit->n_soon;
}

#endif
