// SPDX-License-Identifier: MIT
// Products of rows with few columns: what generating one token after another is made of.
#ifndef CPU_MUL_VEC_H
#define CPU_MUL_VEC_H

#include "gemm/gemm.h"

// Columns of F16 and BF16 up to which rows are multiplied as they are read, though halves are made
// floats again for each four columns then: packing panels takes longer (docs/performance.md). 0 for
// other types and levels.
static inline int64_t most_as_read(enum ggml_type type) {
    if (LANES < 8 || (type != GGML_TYPE_F16 && type != GGML_TYPE_BF16)) return 0;
    return LANES == 16 && type == GGML_TYPE_F16 ? 32 : 15;
}

// As cpu_gemm() for as many rows and without a panel, for the types and numbers of columns that are
// faster so; false, and nothing computed, for the others. A result is summed in the same order
// whatever rows are computed together.
bool CPU_FN(cpu_mul_vec)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                         const struct gemm_column *columns, int64_t n_columns);

#endif
