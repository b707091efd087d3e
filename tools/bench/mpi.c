// SPDX-License-Identifier: MIT
// Devices of other hosts beside bare MPI: by a program of its own, so that no other measurement
// loads MPI.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define PROGRAM "ggml-bench-mpi"

// Beside this program, wherever that lies.
int bench_mpi(int argc, char **argv) {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof(PROGRAM));
    (void)argc;
    path[length > 0 ? length : 0] = '\0';
    char *name = strrchr(path, '/');
    if (name) {
        memcpy(name + 1, PROGRAM, sizeof(PROGRAM));
        execv(path, argv);
    }
    fprintf(stderr, "ggml-bench: %s can't be run; it comes with the MPI plugin\n", path);
    return BENCH_ERROR;
}
