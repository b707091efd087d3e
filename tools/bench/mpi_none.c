// SPDX-License-Identifier: MIT
// Without MPI there are no devices of other hosts.
#include <stdio.h>

#include "bench.h"

int bench_mpi(int argc, char **argv) {
    (void)argc;
    (void)argv;
    fputs("ggml-bench: built without MPI\n", stderr);
    return BENCH_ERROR;
}
