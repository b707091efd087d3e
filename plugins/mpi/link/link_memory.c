// SPDX-License-Identifier: MIT
// Extensions of MPI that some libraries have, found when the program runs: Open MPI and MPICH 4
// have the first function, MPICH since 3.4 the second one.
#define _GNU_SOURCE
#include "link_memory.h"

#include <dlfcn.h>
#include <stddef.h>

enum { MPICH_GPU_CUDA = 0 }; // MPIX_GPU_SUPPORT_CUDA

bool link_memory_has_cuda(void) {
    int (*query)(void) = NULL;
    int (*query_kind)(int kind, int *out_has) = NULL;
    int has = 0;
    *(void **)&query = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    if (query) return query() == 1;
    *(void **)&query_kind = dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
    return query_kind && query_kind(MPICH_GPU_CUDA, &has) == 0 && has;
}
