// SPDX-License-Identifier: MIT
// The built-in CPU device for a group of tests, on one thread: sums have one order.
#ifndef TRAINING_CPU_STREAM_H
#define TRAINING_CPU_STREAM_H

#include "ggml-cpu.h"

static ggml_backend_t cpu;

static inline int cpu_stream_open(void **state) {
    (void)state;
    cpu = ggml_backend_cpu_init();
    if (cpu) ggml_backend_cpu_set_n_threads(cpu, 1);
    return cpu ? 0 : -1;
}

static inline int cpu_stream_close(void **state) {
    (void)state;
    ggml_backend_free(cpu);
    return 0;
}

#endif
