// SPDX-License-Identifier: MIT
// What several measurements need.
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "terminal.h"

double bench_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double bench_busy_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
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

static size_t given_cache; // in bytes; 0: as the system says

bool bench_set_cache(const char *text) {
    int mib;
    if (!bench_read_number(text, 1, 1 << 20, &mib)) return false;
    given_cache = (size_t)mib << 20;
    return true;
}

// So many times the largest cache, where its size is known.
static size_t caches(size_t times, size_t least, size_t most) {
    size_t bytes = given_cache ? given_cache : (size_t)128 << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (cache > 0 && !given_cache) bytes = (size_t)cache;
#endif
    bytes *= times;
    return bytes < least ? least : bytes > most ? most : bytes;
}

size_t bench_cold_bytes(void) {
    return caches(8, (size_t)256 << 20, (size_t)2 << 30);
}

void bench_evict(void) {
    enum { LINE = 64 };
    static volatile char *other; // kept until the program ends
    static size_t bytes;
    if (!other) {
        bytes = caches(2, (size_t)64 << 20, (size_t)1 << 30);
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

void bench_print_row(const char *label, unsigned label_width, const char *cells) {
    enum { INDENT = 4 };
    const unsigned width = terminal_width(stdout);
    if (width == 0 || label_width + text_columns(cells) <= width) {
        printf("%-*s%s\n", (int)label_width, label, cells);
        return;
    }
    text_wrap(stdout, label, 0, INDENT, width);
    putchar('\n');
    text_wrap(stdout, cells, 0, INDENT, width);
    putchar('\n');
}

bool bench_read_type(const char *text, enum ggml_type *out_type) {
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        *out_type = (enum ggml_type)type;
        const char *name = ggml_type_name(*out_type);
        if (name && strcasecmp(name, text) == 0 && ggml_blck_size(*out_type) > 0) return true;
    }
    fprintf(stderr, "ggml-bench: there is no type '%s'; there are:", text);
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const char *name = ggml_type_name((enum ggml_type)type);
        if (name && ggml_blck_size((enum ggml_type)type) > 0) fprintf(stderr, " %s", name);
    }
    fputc('\n', stderr);
    return false;
}

void bench_list_devices(void) {
    fputs("; there are:", stderr);
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i)
        fprintf(stderr, " %s", ggml_backend_dev_name(ggml_backend_dev_get(i)));
    fputs(ggml_backend_dev_count() > 0 ? "\n" : " none\n", stderr);
}

ggml_backend_dev_t bench_find_device(const char *name) {
    ggml_backend_dev_t device = name ? ggml_backend_dev_by_name(name)
                                     : ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device) return device;
    fprintf(stderr, "ggml-bench: there is no device %s", name ? name : "CPU");
    bench_list_devices();
    return NULL;
}

enum bench_exit bench_usage_error(int argc, char **argv, bool valid) {
    const int at = valid ? optind : optind - 1;
    fprintf(stderr, "ggml-bench: %s '%s'; see ggml-bench %s --help\n",
            valid ? "unexpected argument" : "wrong usage at", at < argc ? argv[at] : "", argv[0]);
    return BENCH_USAGE;
}
