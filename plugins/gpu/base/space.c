// SPDX-License-Identifier: MIT
// Tensors of a device need addresses, since the API computes offsets with them; these are reserved
// without pages, so that a range costs no memory and an access by mistake is a fault at once.
#define _DEFAULT_SOURCE
#include "gpu/base/space.h"

#ifdef _WIN32
#include <windows.h>

void *gpu_space_reserve(size_t size) {
    return VirtualAlloc(NULL, size, MEM_RESERVE, PAGE_NOACCESS);
}

void gpu_space_release(void *base, size_t size) {
    (void)size;
    if (base) VirtualFree(base, 0, MEM_RELEASE);
}
#else
#include <sys/mman.h>

void *gpu_space_reserve(size_t size) {
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

void gpu_space_release(void *base, size_t size) {
    if (base) munmap(base, size);
}
#endif
