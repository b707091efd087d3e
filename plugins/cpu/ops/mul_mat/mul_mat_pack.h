// SPDX-License-Identifier: MIT
// src1 of a product as F32.
#ifndef CPU_MUL_MAT_PACK_H
#define CPU_MUL_MAT_PACK_H

#include "ops/mul_mat/mul_mat.h"
#include "types/unpack.h"

// This thread's share of copying all rows of b, packed.
static inline void mul_mat_pack(const struct cpu_task *task, const struct ggml_tensor *b,
                                float *packed) {
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(b->type);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(b), &begin, &end);
    for (int64_t row = begin; row < end; ++row) {
        const char *x = ggml_row_data(b, ggml_row_at(b, row));
        float *y = packed + row * b->ne[0];
        if (ggml_rows_dense(b)) {
            unpack(x, y, b->ne[0]);
            continue;
        }
        for (int64_t i = 0; i < b->ne[0]; ++i)
            unpack(x + (size_t)i * b->nb[0], y + i, 1);
    }
}

// One row of b as F32: where it lies, or in its copy.
static inline const float *mul_mat_column(const struct ggml_tensor *b, const float *packed,
                                          struct ggml_row at) {
    if (!packed) return (const float *)(const void *)ggml_row_data(b, at);
    return packed + ((at.i3 * b->ne[2] + at.i2) * b->ne[1] + at.i1) * b->ne[0];
}

#endif
