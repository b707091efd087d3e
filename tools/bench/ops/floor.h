// SPDX-License-Identifier: MIT
// What the driver of a Vulkan device takes for a chain of launches that is recorded with nothing
// but its own calls: the floor under what a plugin can reach.
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

enum bench_floor_kernel {
    BENCH_FLOOR_EMPTY, // returns at once
    BENCH_FLOOR_SCALE, // scales 16 numbers of one buffer in place
    BENCH_FLOOR_KERNELS
};

struct bench_floor;

// Chains of n_launches, each waiting for the one before, on the first device whose name begins
// this description. NULL if there is none, or this program was built without Vulkan.
struct bench_floor *bench_floor_new(const char *description, int n_launches);
// Submits the chain and waits for its end. Seconds, or -1 after a failure.
double bench_floor_time(struct bench_floor *floor, enum bench_floor_kernel kernel);
// NULL is ignored.
void bench_floor_free(struct bench_floor *floor);

#endif
