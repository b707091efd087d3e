// SPDX-License-Identifier: MIT
// Time of one operation on a device, and the limits that it is compared with.
#ifndef BENCH_OP_MEASURE_H
#define BENCH_OP_MEASURE_H

#include "bench/ops/floor.h"
#include "bench/ops/op_cases.h"
#include "ggml-backend.h"

// Of a node of a chain that was computed before, in seconds; medians over rounds in which all were
// measured in turn. 0: not known.
struct op_launch {
    double whole;                       // the graph from start to end
    double submit;                      // until the device has it
    double driver[BENCH_FLOOR_KERNELS]; // chains recorded without the plugin
    double beyond[3];                   // quartiles of whole less driver[BENCH_FLOOR_SCALE]
    int rounds;
};

struct op_bounds {
    double flops; // per second; 0: not known
    double bytes; // read and written per second by a copy
    double reads; // bytes per second that the host's processors read; 0: not known
    struct op_launch launch;
    int threads;
};

struct op_result {
    double best, median; // seconds
    double busy;         // mean seconds of all processors in this process
    double bytes;
    int runs;
};

// The host's processors bound the CPU and drivers that run on it; `seconds` that each of the other
// measurements takes at least.
void op_bounds_measure(ggml_backend_dev_t device, ggml_backend_t stream, double seconds,
                       struct op_bounds *out_bounds);
// How a case is measured.
struct op_way {
    double seconds;                     // at least
    bool warm;                          // the same weights again and again
    ggml_backend_buffer_type_t weights; // that weights lie in; NULL: where all lies
};

// Returns false if the device failed; runs are 0 for what it does not support.
bool op_case_measure(ggml_backend_t stream, const struct op_case *c, const struct op_way *way,
                     struct op_result *out_result);
// The memory in which the device repacks weights that it is given, or NULL.
ggml_backend_buffer_type_t op_repacked_memory(ggml_backend_dev_t device);

#endif
