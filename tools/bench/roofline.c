// SPDX-License-Identifier: MIT
// Compiled with contraction, so that x * a + b is one instruction where there is one.
#define _GNU_SOURCE
#include "bench/roofline.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

// Levels by features: "arch=haswell" would be that processor and no other.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_EACH_LEVEL __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define FOR_EACH_LEVEL
#endif

// Enough independent sums to hide the latency of two units.
enum { SUMS = 10, STEPS = 1 << 21, MAX_THREADS = 256, HUGE_PAGE = 2 << 20 };
// Vectors that registers hold: wider ones would be kept in memory.
typedef float vector __attribute__((vector_size(32)));
typedef float wide_vector __attribute__((vector_size(64)));
enum { WIDTH = sizeof(vector) / sizeof(float), WIDE = sizeof(wide_vector) / sizeof(float) };

struct worker {
    pthread_t thread;
    float sum;
    const vector *part; // that it reads
    size_t n_vectors;
};

// SUMS chains of dependent multiply-adds on vectors; compiled for three levels of x86-64, of which
// the linker takes the best. Sums that begin alike would be computed once.
#define MULTIPLY_ADD(name, type)                                                                   \
    FOR_EACH_LEVEL static float name(float factor, float term) {                                   \
        type sums[SUMS] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}}, total = {0};         \
        const type a = factor - (type){0}, b = term - (type){0};                                   \
        for (int step = 0; step < STEPS; ++step)                                                   \
            for (int i = 0; i < SUMS; ++i)                                                         \
                sums[i] = sums[i] * a + b;                                                         \
        for (int i = 0; i < SUMS; ++i)                                                             \
            total += sums[i];                                                                      \
        return total[0] + total[1];                                                                \
    }
MULTIPLY_ADD(multiply_add, vector)
MULTIPLY_ADD(multiply_add_wide, wide_vector)

static void *run(void *argument) {
    struct worker *worker = argument;
    worker->sum = multiply_add(0.5f, 0.25f);
    return NULL;
}

static void *run_wide(void *argument) {
    struct worker *worker = argument;
    worker->sum = multiply_add_wide(0.5f, 0.25f);
    return NULL;
}

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Those that this process may run on.
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

// Starts a thread per processor and waits for all: seconds. *n: how many could be started.
static double run_all(struct worker *workers, int *n, void *(*function)(void *worker)) {
    int started = 0;
    const double start = now_seconds();
    while (started < *n &&
           pthread_create(&workers[started].thread, NULL, function, &workers[started]) == 0) {
        ++started;
    }
    for (int i = 0; i < started; ++i)
        pthread_join(workers[i].thread, NULL);
    *n = started;
    return now_seconds() - start;
}

// Operations per second, two for each multiply-add: the best of five attempts with vectors of each
// width, as others may use the machine.
double bench_fma_peak(int *out_threads) {
    static struct worker workers[MAX_THREADS];
    double best = 0;
    *out_threads = count_processors();
    for (int attempt = 0; attempt < 10; ++attempt) {
        const bool wide = attempt % 2 == 0;
        int n = *out_threads;
        const double seconds = run_all(workers, &n, wide ? run_wide : run);
        const double rate = 2.0 * SUMS * (wide ? WIDE : WIDTH) * STEPS * n / seconds;
        if (rate > best) best = rate;
    }
    return best;
}

// Four sums in turn.
#define READ_ALL(name, look_ahead)                                                                 \
    FOR_EACH_LEVEL static float name(const vector *part, size_t n_vectors) {                       \
        enum { STREAMS = 4, AHEAD = 128 };                                                         \
        vector sums[STREAMS] = {0};                                                                \
        for (size_t i = 0; i + STREAMS <= n_vectors; i += STREAMS) {                               \
            for (int k = 0; k < STREAMS; ++k) {                                                    \
                if (look_ahead) __builtin_prefetch(part + i + k + AHEAD);                          \
                sums[k] += part[i + (size_t)k];                                                    \
            }                                                                                      \
        }                                                                                          \
        float total = 0;                                                                           \
        for (int i = 0; i < STREAMS * WIDTH; ++i)                                                  \
            total += sums[i / WIDTH][i % WIDTH];                                                   \
        return total;                                                                              \
    }
READ_ALL(read_all, false)
READ_ALL(read_all_ahead, true)

static void *read_part(void *argument) {
    struct worker *worker = argument;
    worker->sum = read_all(worker->part, worker->n_vectors);
    return NULL;
}

static void *read_part_ahead(void *argument) {
    struct worker *worker = argument;
    worker->sum = read_all_ahead(worker->part, worker->n_vectors);
    return NULL;
}

// Bytes per second, each thread reading a part of its own: the best of some attempts, of which
// every other one asks for memory ahead. The hardware does that by itself, but may stop at pages;
// which of both is faster depends on the processor, and on what others read. The memory is written
// first, so that its pages are there: huge ones where the system has them, as tensors have. 0
// without memory.
double bench_read_peak(size_t size) {
    static struct worker workers[MAX_THREADS];
    const int n = count_processors();
    const size_t n_vectors = size / sizeof(vector) / (size_t)n;
    const size_t bytes = (size_t)n * n_vectors * sizeof(vector);
    double best = 0;
    char *const memory = malloc(bytes + HUGE_PAGE);
    if (memory == NULL) return 0;
    vector *const parts = (vector *)(memory + (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE));
#ifdef __linux__
    madvise(parts, bytes, MADV_HUGEPAGE);
#endif
    memset(parts, 1, bytes);
    for (int i = 0; i < n; ++i) {
        workers[i].part = parts + (size_t)i * n_vectors;
        workers[i].n_vectors = n_vectors;
    }
    for (int attempt = 0; attempt < 10; ++attempt) {
        int started = n;
        const bool ahead = attempt % 2 == 0;
        const double seconds = run_all(workers, &started, ahead ? read_part_ahead : read_part);
        const double rate = (double)(n_vectors * sizeof(vector)) * started / seconds;
        if (rate > best) best = rate;
    }
    free(memory);
    return best;
}
