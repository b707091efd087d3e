// SPDX-License-Identifier: MIT
// What several measurements need.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

double bench_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void bench_warm_up(void) {
    const double end = bench_ns() + 3e8;
    volatile unsigned count = 0;
    while (bench_ns() < end) {
        for (int i = 0; i < 1000; ++i) {
            count = count + 1;
        }
    }
}

// Twice the largest cache, where the system tells.
static size_t evicting_bytes(void) {
    const size_t least = (size_t)64 << 20, most = (size_t)1 << 30;
    size_t bytes = (size_t)256 << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (cache > 0) bytes = 2 * (size_t)cache;
#endif
    return bytes < least ? least : bytes > most ? most : bytes;
}

void bench_evict(void) {
    enum { LINE = 64 };
    static volatile char *other; // kept until the program ends
    static size_t bytes;
    if (!other) {
        bytes = evicting_bytes();
        other = calloc(bytes, 1);
    }
    while (!other && bytes > 0) {
        bytes /= 2;
        other = calloc(bytes, 1);
    }
    for (size_t i = 0; i < bytes; i += LINE) {
        other[i] = (char)(other[i] + 1);
    }
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int n) {
    qsort(values, (size_t)n, sizeof(values[0]), by_value);
    return values[n / 2];
}

bool bench_read_number(const char *text, int low, int high, int *out_number) {
    char *end = NULL;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < low || number > high) return false;
    *out_number = (int)number;
    return true;
}
