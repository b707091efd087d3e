// SPDX-License-Identifier: MIT
// In place of kernels.c where the CPU plugin is not built.
#include <stdio.h>

#include "bench.h"

int bench_kernels(int argc, char **argv) {
    (void)argc, (void)argv;
    fputs("ggml-bench: kernels needs the CPU plugin, which was not built\n", stderr);
    return BENCH_ERROR;
}
