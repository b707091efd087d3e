// SPDX-License-Identifier: MIT
// In place of load.c where processes are started in other ways.
#include <stdio.h>

#include "bench.h"

int bench_load_once(int argc, char **argv) {
    (void)argc;
    (void)argv;
    fputs("ggml-bench: load is not measured on this system\n", stderr);
    return BENCH_ERROR;
}

int bench_load(int argc, char **argv) {
    return bench_load_once(argc, argv);
}
