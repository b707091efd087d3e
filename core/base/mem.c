// SPDX-License-Identifier: MIT
// The C library's allocation behind a hook by which tests refuse one.
#define _POSIX_C_SOURCE 200809L
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <malloc.h>
#endif

static bool (*fault_hook)(void *context);
static void *fault_context;

void ggml_mem_set_fault_hook(bool (*may_allocate)(void *context), void *context) {
    fault_hook = may_allocate;
    fault_context = context;
}

static bool refused(void) {
    return fault_hook && !fault_hook(fault_context);
}

void *ggml_mem_alloc(size_t size) {
    return refused() ? NULL : malloc(size);
}

void *ggml_mem_calloc(size_t count, size_t size) {
    return refused() ? NULL : calloc(count, size);
}

void *ggml_mem_realloc(void *memory, size_t size) {
    return refused() ? NULL : realloc(memory, size);
}

char *ggml_mem_strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = ggml_mem_alloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void *ggml_mem_aligned_alloc(size_t alignment, size_t size) {
    // Some C libraries' posix_memalign() would wrap around.
    if (refused() || size > SIZE_MAX - alignment) return NULL;
#ifdef _WIN32
    return _aligned_malloc(size, alignment);
#else
    void *memory = NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
#endif
}

void ggml_mem_free(void *memory) {
    free(memory);
}

void ggml_mem_aligned_free(void *memory) {
#ifdef _WIN32
    _aligned_free(memory);
#else
    free(memory);
#endif
}
