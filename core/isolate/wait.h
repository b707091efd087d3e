// SPDX-License-Identifier: MIT
// Waiting for a message of the other process. To sleep and be woken takes longer than a short graph
// does, so where the last messages came soon, the next one may be looked for a while first. Whoever
// looks on busy processors keeps the other side from sending, so each side goes by the times that
// messages took in either way, and tries the other way at times.
#ifndef GGML_ISOLATE_WAIT_H
#define GGML_ISOLATE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    // Longest to look, and what counts as soon: more than it takes to wake one processor that
    // sleeps and then the other (40 us each in a virtual machine).
    WAIT_LOOK_NS = 100000,
    WAIT_HABIT = 2,  // messages in a row that must have come soon
    WAIT_TRY = 32,   // of so many messages one is waited for in the way that took longer
    WAIT_WEIGHT = 8, // of so many messages the mean time is
};

// Of one side. Zero-initialised: has learnt nothing.
struct wait_habit {
    int n_soon;         // messages in a row, up to WAIT_HABIT
    int n_processors;   // that this process may use, 0: not asked yet
    int n_until_try;    // messages
    bool looks;         // for the message under way
    int64_t mean_ns[2]; // how long messages took that were slept and looked for; 0: none yet
};

// Processors that this process may use. [any-thread]
int wait_count_processors(void);

// Of a clock that only goes forward. [any-thread]
int64_t wait_clock_ns(void);

// Whether to look before sleeping. On one processor the other side can't run meanwhile.
static inline bool wait_looks(struct wait_habit *habit) {
    if (habit->n_processors == 0) habit->n_processors = wait_count_processors();
    habit->looks = false;
    if (habit->n_soon < WAIT_HABIT || habit->n_processors == 1) return false;
    const bool better = habit->mean_ns[true] <= habit->mean_ns[false];
    const bool tries = habit->n_until_try == 0;
    habit->n_until_try = tries ? WAIT_TRY - 1 : habit->n_until_try - 1;
    habit->looks = tries ? !better : better;
    return habit->looks;
}

// A message came after so long. One that came late says as much of either way, and is not to weigh
// more than others.
static inline void wait_learn(struct wait_habit *habit, int64_t waited_ns) {
    const int64_t time = waited_ns < 2 * WAIT_LOOK_NS ? waited_ns : 2 * WAIT_LOOK_NS;
    int64_t *mean = &habit->mean_ns[habit->looks];
    if (habit->n_soon == WAIT_HABIT) *mean += (time - *mean) / (*mean > 0 ? WAIT_WEIGHT : 1);
    if (waited_ns > WAIT_LOOK_NS)
        habit->n_soon = 0;
    else if (habit->n_soon < WAIT_HABIT)
        ++habit->n_soon;
}

#endif
