// SPDX-License-Identifier: MIT
// Rows of a recurrence's state, interleaved: vector i of row r is vector i * BLOCK_ROWS + r of the
// block, so that kernels reach all rows by one pointer. Elements beyond a row's end and rows beyond
// the last are 0.
#ifndef CPU_ROW_BLOCK_H
#define CPU_ROW_BLOCK_H

#include "ops/recurrent/row_size.h"
#include "simd/simd.h"

_Static_assert(ROW_PADDING % LANES == 0, "rows are whole vectors");
_Static_assert(BLOCK_ROWS == 8, "sums of a block are those of vf_sum_eight()");

// Rows that a kernel changes at once: the sum and the factor of each stay in registers.
enum { ROWS_IN_REGISTERS = VECTORS >= 32 ? BLOCK_ROWS : QUAD };

// Copies n elements and zeros up to the next whole vector.
CPU_INLINE void row_pad(float *y, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(y + i, vf_load(x + i));
    if (i < n) vf_store(y + i, vf_load_part(x + i, n - i));
}

// Interleaves n_rows rows of n elements. A constant n_rows lets compilers unroll this.
CPU_INLINE void block_load_rows(float *block, const float *rows, int64_t n, const int64_t n_rows) {
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        for (int64_t r = 0; r < BLOCK_ROWS; ++r)
            vf_store(block + i * BLOCK_ROWS + r * LANES,
                     r < n_rows ? vf_load(rows + r * n + i) : (vf){0});
    }
    for (int64_t r = 0; r < BLOCK_ROWS && whole < n; ++r)
        vf_store(block + whole * BLOCK_ROWS + r * LANES,
                 r < n_rows ? vf_load_part(rows + r * n + whole, n - whole) : (vf){0});
}

CPU_INLINE void block_store_rows(const float *block, float *rows, int64_t n, const int64_t n_rows) {
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        for (int64_t r = 0; r < n_rows; ++r)
            vf_store(rows + r * n + i, vf_load(block + i * BLOCK_ROWS + r * LANES));
    }
    for (int64_t r = 0; r < n_rows && whole < n; ++r)
        vf_store_part(rows + r * n + whole, vf_load(block + whole * BLOCK_ROWS + r * LANES),
                      n - whole);
}

// n_rows <= BLOCK_ROWS rows to the block.
static void block_load(float *block, const float *rows, int64_t n, int64_t n_rows) {
    if (n_rows == BLOCK_ROWS)
        block_load_rows(block, rows, n, BLOCK_ROWS);
    else
        block_load_rows(block, rows, n, n_rows);
}

// And back.
static void block_store(const float *block, float *rows, int64_t n, int64_t n_rows) {
    if (n_rows == BLOCK_ROWS)
        block_store_rows(block, rows, n, BLOCK_ROWS);
    else
        block_store_rows(block, rows, n, n_rows);
}

#endif
