// SPDX-License-Identifier: MIT
// Products of quantised rows with few columns that are rounded to bytes: whole numbers are
// multiplied.
#ifndef CPU_MUL_ROUNDED_H
#define CPU_MUL_ROUNDED_H

#include "gemm/gemm.h"
#include "ops/mul_mat/rounded/gemm_rounded.h"
#include "ops/mul_mat/rounded/rounded.h"

// Whether the level is faster with whole numbers, of the types of rounded_list.inl: Q2_K, TQ2_0 and
// FP4 are not where blocks have to be opened first, nor is IQ4 where tables of floats are.
static inline bool rounding_pays(enum ggml_type type) {
    if (type == GGML_TYPE_Q2_K || type == GGML_TYPE_TQ2_0 || type == GGML_TYPE_MXFP4)
        return LANES >= 8;
    if (type == GGML_TYPE_NVFP4) return LANES == 16;
    if (type == GGML_TYPE_IQ4_NL || type == GGML_TYPE_IQ4_XS)
        return (LANES > 1 && LANES < 16) || CPU_STRIPS;
    return LANES > 1;
}

// Rounds each column, for rows of the type, to the nearest multiples of its groups' scales; memory
// holds rounded_size(k, n_columns). A group with an infinity keeps only the infinities, one with
// NaN is NaN.
void CPU_FN(cpu_round_columns)(enum ggml_type type, const struct gemm_column *columns,
                               int64_t n_columns, int64_t k, void *memory);

// As cpu_mul_vec() with columns that were rounded, for every type of blocks; n_columns <=
// ROUNDED_COLUMNS.
void CPU_FN(cpu_mul_rounded)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                             const struct gemm_column *columns, int64_t n_columns, void *memory);

#endif
