// SPDX-License-Identifier: MIT
// Compiled with contraction, so that x * a + b is one instruction where there is one.
#define _GNU_SOURCE
#include "bench/roofline.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#if defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_EACH_LEVEL __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define FOR_EACH_LEVEL
#endif

// Enough independent sums to hide the latency of two units.
enum { SUMS = 10, WIDTH = 16, STEPS = 1 << 20, MAX_THREADS = 256 };
typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));

struct worker {
    pthread_t thread;
    float sum;
};

FOR_EACH_LEVEL
static float multiply_add(int steps, float factor, float term) {
    vector sums[SUMS] = {0};
    const vector a = factor - (vector){0}, b = term - (vector){0};
    for (int step = 0; step < steps; ++step) {
        for (int i = 0; i < SUMS; ++i)
            sums[i] = sums[i] * a + b;
    }
    float total = 0;
    for (int i = 0; i < SUMS * WIDTH; ++i)
        total += sums[i / WIDTH][i % WIDTH];
    return total;
}

static void *run(void *argument) {
    struct worker *worker = argument;
    worker->sum = multiply_add(STEPS * 2, 0.5f, 0.25f);
    return NULL;
}

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int count_processors(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
#else
    return 1;
#endif
}

double bench_fma_peak(int *out_threads) {
    static struct worker workers[MAX_THREADS];
    const int n = count_processors();
    double best = 0;
    *out_threads = n;
    for (int attempt = 0; attempt < 5; ++attempt) {
        int started = 0;
        const double start = now_seconds();
        while (started < n &&
               pthread_create(&workers[started].thread, NULL, run, &workers[started]) == 0) {
            ++started;
        }
        for (int i = 0; i < started; ++i)
            pthread_join(workers[i].thread, NULL);
        const double rate = 2.0 * SUMS * WIDTH * STEPS * 2 * started / (now_seconds() - start);
        if (rate > best) best = rate;
    }
    return best;
}
