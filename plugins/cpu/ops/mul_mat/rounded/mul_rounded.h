// SPDX-License-Identifier: MIT
// Products of quantised rows with few columns that are rounded to bytes: whole numbers are
// multiplied.
#ifndef CPU_MUL_ROUNDED_H
#define CPU_MUL_ROUNDED_H

#include "gemm/gemm.h"
#include "ops/mul_mat/rounded/gemm_rounded.h"
#include "ops/mul_mat/rounded/rounded.h"

// Whether the level is faster with whole numbers, of the types of rounded_list.inl: Q2_K, TQ2_0 and
// MXFP4 are where rows can be lanes (word_dots.h), IQ4 is where no table of floats is faster.
static inline bool rounding_pays(enum ggml_type type) {
    if (type == GGML_TYPE_Q2_K || type == GGML_TYPE_TQ2_0 || type == GGML_TYPE_MXFP4)
        return CPU_ROWS_AS_LANES;
    if (type == GGML_TYPE_NVFP4) return LANES == 16;
    if (type == GGML_TYPE_IQ4_NL || type == GGML_TYPE_IQ4_XS)
        return LANES > 1 && (LANES < 16 || !STRIPS_OF_PAIRS);
    return LANES > 1;
}

// Whether rows are opened once for all fours (word_dots.h): not where they are repacked, nor of
// types that have no such way at the level.
static inline bool are_opened_once(enum ggml_type type, bool repacked) {
    if (LANES == 16) return type != GGML_TYPE_Q8_0 && type != GGML_TYPE_NVFP4;
    return !repacked && strip_parts(type) == 1;
}

// Whether n columns of k elements are multiplied so at the level: strips of more are faster
// (docs/performance.md), or were not compared. More than two fours are if rows are opened once for
// all of them, or need no opening, and the columns stay in the second-level cache.
static inline bool in_fours(enum ggml_type type, int64_t n, int64_t k, bool repacked) {
    if (n <= ROUNDED_COLUMNS) return true;
    if ((LANES < 8 && !STRIPS_OF_PAIRS) || n > ROUNDED_MOST) return false;
    if (LANES >= 8 && n <= 2 * ROUNDED_COLUMNS) return true;
    const bool is_plain =
        LANES == 16 && !STRIPS_OF_PAIRS && type == GGML_TYPE_Q8_0 && n <= 4 * ROUNDED_COLUMNS;
    return (are_opened_once(type, repacked) || is_plain) && rounded_size(k, n) <= ROUNDED_CACHED;
}

// Rounds each column, for rows of the type, repacked or not, to the nearest multiples of its
// groups' scales; memory holds rounded_size(k, n_columns). A group with an infinity keeps only the
// infinities, one with NaN is NaN.
void CPU_FN(cpu_round_columns)(enum ggml_type type, bool repacked,
                               const struct gemm_column *columns, int64_t n_columns, int64_t k,
                               void *memory);

// As cpu_mul_vec() with columns that were rounded, for every type of blocks; n_columns <=
// ROUNDED_MOST.
void CPU_FN(cpu_mul_rounded)(const struct gemm_rows *rows, const struct gemm_piece *piece,
                             const struct gemm_column *columns, int64_t n_columns, void *memory);

#endif
