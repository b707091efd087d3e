// SPDX-License-Identifier: MIT
// Address ranges without memory behind them.
#define _DEFAULT_SOURCE
#include "internal.h"

#ifdef _WIN32
#include <windows.h>

void *space_reserve(size_t size) {
    return VirtualAlloc(NULL, size, MEM_RESERVE, PAGE_NOACCESS);
}

void space_release(void *base, size_t size) {
    (void)size;
    if (base) VirtualFree(base, 0, MEM_RELEASE);
}
#else
#include <sys/mman.h>

enum { MOST = VIRTUAL_MAX_ALIGNMENT }; // no page is larger

static size_t whole(size_t size) {
    return (size + MOST - 1) / MOST * MOST;
}

static void release(char *from, const char *to) {
    if (from < to) munmap(from, (size_t)(to - from));
}

// More is reserved than asked for, and what lies before and behind the aligned part given back.
void *space_reserve(size_t size) {
    if (size == 0 || size > SIZE_MAX - 2 * (size_t)MOST) return NULL;
    const size_t all = whole(size) + MOST;
    char *begin = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (begin == MAP_FAILED) return NULL;
    char *base = begin + (whole((uintptr_t)begin) - (uintptr_t)begin);
    release(begin, base);
    release(base + whole(size), begin + all);
    return base;
}

void space_release(void *base, size_t size) {
    if (base) munmap(base, whole(size));
}
#endif
