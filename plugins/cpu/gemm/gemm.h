// SPDX-License-Identifier: MIT
// Products of rows of any type with columns of F32: what mul_mat, mul_mat_id and attention have in
// common.
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include "gemm/gemm_size.h"
#include "simd/simd.h"
#include "types/unpack.h"

// Dense rows of k elements.
struct gemm_rows {
    const char *data;
    size_t stride; // bytes between rows
    enum ggml_type type;
    int64_t k;
};

// y[row] = <row, x>; y is indexed by the row's number.
struct gemm_column {
    const float *x;
    float *y;
};

// Rows [row, row + n_rows), n_rows <= GEMM_MAX_ROWS. The panel holds n_rows * GEMM_DEPTH floats.
// Every result is summed in the same order, whatever rows and columns are computed together.
void CPU_FN(cpu_gemm)(const struct gemm_rows *rows, int64_t row, int n_rows,
                      const struct gemm_column *columns, int64_t n_columns, float *panel);

// Rows that cpu_gemm_packed computes together: it is best called with a multiple.
enum { GEMM_PANEL = LANES == 1 ? 4 : 3 * LANES };

// The same for any number of rows and many columns, 1 to PACKED_COLUMNS, summed in another order.
// work holds gemm_packed_floats(n_columns, rows->k) floats.
void CPU_FN(cpu_gemm_packed)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                             const struct gemm_column *columns, int64_t n_columns, float *work);

// The same with columns rounded to BF16, at levels with CPU_BF16_PAIRS: rows are BF16, k is even
// and data and stride are multiples of four.
void CPU_FN(cpu_gemm_pairs)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                            const struct gemm_column *columns, int64_t n_columns, float *work);

#endif
