// SPDX-License-Identifier: MIT
// In place of floor.c where there are no headers of Vulkan.
#include <stddef.h>

#include "bench/ops/floor.h"

struct bench_floor *bench_floor_new(const char *description, int n_launches) {
    (void)description;
    (void)n_launches;
    return NULL;
}

double bench_floor_time(struct bench_floor *floor, enum bench_floor_kernel kernel) {
    (void)floor;
    (void)kernel;
    return -1;
}

void bench_floor_free(struct bench_floor *floor) {
    (void)floor;
}
