// SPDX-License-Identifier: MIT
// How many processors there are to wait on, and the clock, for both sides of an isolated device.
#define _GNU_SOURCE
#include "isolate/wait.h"

#include <sched.h>
#include <time.h>

int64_t wait_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// One, where that can't be told: nobody looks then.
int wait_count_processors(void) {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}
