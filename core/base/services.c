// SPDX-License-Identifier: MIT
// Services of ggml.h and ggml-impl.h that need no more than base/mem.h and base/status.h: one
// source for the core and for the helper library of plugins, which provide those two in their
// own ways.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"

enum ggml_host_status ggml_fail(enum ggml_host_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ggml_fail_v(status, format, args);
    va_end(args);
    return status;
}

void *ggml_aligned_malloc(size_t size) {
    // 64 bytes: a cache line, and the largest vector register.
    void *memory = ggml_mem_aligned_alloc(64, size > 0 ? size : 1);
    if (!memory) ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for %zu aligned bytes", size);
    return memory;
}

void ggml_aligned_free(void *ptr, size_t size) {
    (void)size;
    ggml_mem_aligned_free(ptr);
}

int64_t ggml_time_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b) {
    return guid_a && guid_b && memcmp(guid_a, guid_b, sizeof(ggml_guid)) == 0;
}

static pthread_mutex_t critical_section = PTHREAD_MUTEX_INITIALIZER;

void ggml_critical_section_start(void) {
    pthread_mutex_lock(&critical_section);
}

void ggml_critical_section_end(void) {
    pthread_mutex_unlock(&critical_section);
}
