// SPDX-License-Identifier: MIT
// Filters of a convolution as F32.
#ifndef CPU_FILTERS_H
#define CPU_FILTERS_H

#include "simd/strided.h"

// Copies this thread's share of a kernel, packed.
static inline void conv_pack_filters(const struct cpu_task *task, const struct ggml_tensor *kernel,
                                     float *packed) {
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(kernel), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        cpu_gather_floats(packed + r * kernel->ne[0], ggml_row_data(kernel, ggml_row_at(kernel, r)),
                          kernel->nb[0], kernel->type, kernel->ne[0]);
    }
}

#endif
