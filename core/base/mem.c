// SPDX-License-Identifier: MIT
// The C library's allocation behind a hook by which tests refuse one.
#define _DEFAULT_SOURCE // madvise()
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <malloc.h>
#else
#include <sys/mman.h>
#endif

// Memory of this size, which is mapped each time, has huge pages where the system has them: it
// is written with a hundredth of the page faults, and read on where a page of 4 KiB would end.
enum { HUGE_PAGE = 2 << 20, HUGE_SIZE = 32 << 20 };

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

#ifndef _WIN32
// Of the whole huge pages within. Kernels without them refuse it, and nothing is lost.
static void use_huge_pages(char *memory, size_t size) {
#ifdef MADV_HUGEPAGE
    const size_t before = -(uintptr_t)memory % HUGE_PAGE;
    madvise(memory + before, (size - before) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}
#endif

void *ggml_mem_aligned_alloc(size_t alignment, size_t size) {
    // Some C libraries' posix_memalign() would wrap around.
    if (refused() || size > SIZE_MAX - alignment) return NULL;
#ifdef _WIN32
    return _aligned_malloc(size, alignment);
#else
    void *memory = NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    if (posix_memalign(&memory, alignment, size) != 0) return NULL;
    if (size >= HUGE_SIZE) use_huge_pages(memory, size);
    return memory;
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
