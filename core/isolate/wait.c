// SPDX-License-Identifier: MIT
// How many processors there are to wait on, for both sides of an isolated device.
#define _GNU_SOURCE
#include "isolate/wait.h"

#include <sched.h>

// One, where that can't be told: nobody looks then.
int wait_count_processors(void) {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}
