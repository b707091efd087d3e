// SPDX-License-Identifier: MIT
// Products of rows with few columns: what generating one token after another is made of.
#ifndef CPU_MUL_VEC_H
#define CPU_MUL_VEC_H

#include "gemm/gemm.h"

// As cpu_gemm() for as many rows and without a panel, for the types and numbers of columns that are
// faster so; false, and nothing computed, for the others. A result is summed in the same order
// whatever rows are computed together.
bool CPU_FN(cpu_mul_vec)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                         const struct gemm_column *columns, int64_t n_columns);

#endif
