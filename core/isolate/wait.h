// SPDX-License-Identifier: MIT
// Waiting for a message of the other process. To sleep and be woken takes longer than a short graph
// does, so where messages are due soon they may be looked for a while first. Each side says with a
// message how long it took until then by itself: whether the next one is due soon is judged by that
// alone, as how long it takes to wake must not decide whether to sleep. Whoever looks may keep the
// other side from its processor, so each goes by the times that messages took in either way, and
// tries the other way at times.
#ifndef GGML_ISOLATE_WAIT_H
#define GGML_ISOLATE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WAIT_SOON_NS = 80000,  // what is due within that
    WAIT_LOOK_NS = 120000, // longest to look
    WAIT_HABIT = 2,        // messages in a row that must have been due soon
    WAIT_PERIOD = 128,     // of so many messages a few in a row are waited for in the way that took
    WAIT_TRIES = 4,        // longer: the first one finds the processors as the other way left them
    WAIT_WEIGHT = 8,       // of so many messages the mean is
};

// Of one side, for messages of one kind. Zero-initialised: has learnt nothing.
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
    habit->n_until_try = habit->n_until_try == 0 ? WAIT_PERIOD - 1 : habit->n_until_try - 1;
    const bool tries = habit->n_until_try < WAIT_TRIES;
    habit->looks = tries ? !better : better;
    return habit->looks;
}

// A message came after so long, and the other side says that it took so much of that. One that took
// far longer than most says little of the way it was waited for.
static inline void wait_learn(struct wait_habit *habit, int64_t waited_ns, int64_t taken_ns) {
    const int64_t taken = taken_ns < 0 ? 0 : taken_ns < waited_ns ? taken_ns : waited_ns;
    int64_t *mean = &habit->mean_ns[habit->looks];
    const int64_t time = *mean > 0 && waited_ns > 2 * *mean ? 2 * *mean : waited_ns;
    if (habit->n_soon == WAIT_HABIT) *mean += (time - *mean) / (*mean > 0 ? WAIT_WEIGHT : 1);
    if (taken > WAIT_SOON_NS)
        habit->n_soon = 0;
    else if (habit->n_soon < WAIT_HABIT)
        ++habit->n_soon;
}

#endif
