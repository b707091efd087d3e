// SPDX-License-Identifier: MIT
// Columns of src1 rounded to whole numbers of a byte, and when that may be; shared with the work
// functions.
#ifndef CPU_ROUNDED_H
#define CPU_ROUNDED_H

#include "ggml-shape.h"

// Whether rows are multiplied as lanes of words (word_dots.h) at the level.
#if defined(__SSE4_1__) || defined(CPU_NEON)
#define CPU_ROWS_AS_LANES 1
#else
#define CPU_ROWS_AS_LANES 0
#endif

enum {
    ROUNDED_GROUP = 32,                             // elements that share a scale
    GROUP_WORDS = 8,                                // words of four bytes that they fill
    ROUNDED_COLUMNS = 4,                            // that are multiplied at a time: fours
    ROUNDED_FOURS = 8,                              // most of these
    ROUNDED_MOST = ROUNDED_COLUMNS * ROUNDED_FOURS, // columns that are multiplied so, at any level
    ROUNDED_DEPTH = 256, // elements of a part of a column: whole blocks of src0
};

// A part of a column: element i is scales[i / ROUNDED_GROUP] * numbers[i]. Kernels may have numbers
// in another order (pair_line_groups()).
struct rounded {
    int8_t numbers[ROUNDED_DEPTH];                 // -127 to 127
    float scales[ROUNDED_DEPTH / ROUNDED_GROUP];   // largest magnitude of the group / 127
    float sums32[ROUNDED_DEPTH / ROUNDED_GROUP];   // of 32 elements, after rounding
    float sums[2 * ROUNDED_DEPTH / ROUNDED_GROUP]; // of 16
    union {
        // What sums of products of biased numbers begin with, by group: four lanes of a row, or
        // half of the lanes that four rows share, or all rows where these are lanes.
        int32_t starts[ROUNDED_DEPTH / ROUNDED_GROUP][8];
        float spread[ROUNDED_DEPTH / ROUNDED_GROUP][8]; // sums, then scales, as lanes need them
    };
};

// Columns of whole fours before the last ones of n_columns.
static inline int64_t rounded_before(int64_t n_columns) {
    return n_columns > 0 ? (n_columns - 1) / ROUNDED_COLUMNS * ROUNDED_COLUMNS : 0;
}

// Columns that the last ones of n_columns are stored as: the last one again beyond them. Parts of
// the same elements of a four lie side by side, so that one address tells a kernel where they are;
// fours follow each other.
static inline int rounded_last(int64_t n_columns) {
    const int64_t n = n_columns - rounded_before(n_columns);
    return n <= 2 ? (int)n : ROUNDED_COLUMNS;
}

// Parts of a column of k elements.
static inline int64_t rounded_parts(int64_t k) {
    return (k + ROUNDED_DEPTH - 1) / ROUNDED_DEPTH;
}

// Bytes of columns of k elements, whole groups.
static inline size_t rounded_size(int64_t k, int64_t n_columns) {
    const int64_t stored = rounded_before(n_columns) + rounded_last(n_columns);
    return (size_t)(rounded_parts(k) * stored) * sizeof(struct rounded);
}

// Of more than two fours, bytes that the second-level cache holds beside what is multiplied with
// them: others are multiplied in strips.
enum { ROUNDED_CACHED = 384 << 10 };

// Bytes of as many of n_columns as any level rounds so.
static inline size_t rounded_size_most(int64_t k, int64_t n_columns) {
    const int64_t most = n_columns < ROUNDED_MOST ? n_columns : ROUNDED_MOST;
    const int64_t two_fours = most < 2 * ROUNDED_COLUMNS ? most : 2 * ROUNDED_COLUMNS;
    const size_t all = rounded_size(k, most), few = rounded_size(k, two_fours);
    const size_t cached = all < ROUNDED_CACHED ? all : ROUNDED_CACHED;
    return few > cached ? few : cached;
}

// Strips of columns, as they are multiplied with panels of rows.
enum {
    STRIP_COLUMNS = 4,
    STRIP_DEPTH = 256,       // elements of each column: whole blocks of src0
    STRIP_GROUPS = 16,       // of a block's numbers, at most
    STRIP_PANEL = 48,        // rows of a panel, at most
    STRIP_ROW_BYTES = 64,    // of one element of these, at most: words of 32 rows
    STRIP_WIDTH = 512,       // columns that a panel is multiplied with at a time
    STRIPS_SIZE = 512 << 10, // bytes of strips that are read again for each panel, about
};

// STRIP_COLUMNS columns, STRIP_DEPTH elements deep; what lies beyond the last one is 0. Numbers
// that are multiplied as words need two strips that follow each other, of half the depth each.
struct strip {
    union {
        uint8_t numbers[STRIP_DEPTH * STRIP_COLUMNS]; // larger by COLUMN_BIAS, RUN of each column
        int16_t words[STRIP_DEPTH / 4][STRIP_COLUMNS][2];
    };
    float scales[STRIP_DEPTH / ROUNDED_GROUP][STRIP_COLUMNS];
    union {
        // After rounding, of the groups of src0; not of words.
        float sums[STRIP_GROUPS][STRIP_COLUMNS];
        // What sums of pairs begin with where rows are biased: -bias times those of the group's
        // first two numbers of each four, and of the last two.
        int16_t starts[STRIP_GROUPS][STRIP_COLUMNS][2];
    };
};

// Rows that are multiplied with strips, STRIP_DEPTH elements deep: vectors side by side.
struct strip_panel {
    int8_t numbers[STRIP_DEPTH * STRIP_ROW_BYTES]; // some of a row, then as many of the next
    float scales[STRIP_GROUPS * STRIP_PANEL];
    float offsets[STRIP_GROUPS * STRIP_PANEL];
    int32_t starts[STRIP_GROUPS * STRIP_PANEL]; // -128 times the sum of the numbers
};

// Strips over the columns, and in the depth below.
static inline int64_t strips_across(int64_t n_columns) {
    return (n_columns + STRIP_COLUMNS - 1) / STRIP_COLUMNS;
}

static inline int64_t strips_deep(int64_t k) {
    return (k + STRIP_DEPTH - 1) / STRIP_DEPTH;
}

// Strips that follow each other for the same columns and STRIP_DEPTH elements, at any level:
// numbers of rows that need all eight bits and a sign may be multiplied as words.
static inline int most_strip_parts(enum ggml_type type) {
    return type == GGML_TYPE_Q8_0 || type == GGML_TYPE_IQ4_NL || type == GGML_TYPE_IQ4_XS ? 2 : 1;
}

// How deep so many columns are multiplied before the next panel, in STRIP_DEPTH elements.
static inline int64_t strips_at_a_time(int64_t n_columns, int parts) {
    const int64_t n =
        STRIPS_SIZE / (int64_t)sizeof(struct strip) / strips_across(n_columns) / parts;
    return n < 1 ? 1 : n;
}

// Whether src1 of a product may be rounded so. Where nothing is said of src1, F32 sums ask for F32
// terms.
static inline bool may_round_src1(const struct ggml_tensor *node) {
    const int32_t sums = ggml_get_op_params_i32(node, 0), src1 = ggml_get_op_params_i32(node, 3);
    return src1 == GGML_PREC_UNDEFINED ? sums != GGML_PREC_F32 : src1 >= GGML_PREC_Q8;
}

// Whether src1 is rounded where few columns share a matrix, at levels with vectors: for the types
// that gain by it.
static inline bool rounds_few(const struct ggml_tensor *node) {
    switch ((int)node->src[0]->type) {
#define CPU_BLOCK_ROW(NAME, ...) case GGML_TYPE_##NAME:
#include "ops/mul_mat/rounded/rounded_list.inl"
        return node->src[1]->type == GGML_TYPE_F32 && may_round_src1(node);
    default: return false;
    }
}

// Whether src1 is rounded where more share it, at levels with products of bytes: for all blocks.
static inline bool rounds_many(const struct ggml_tensor *node) {
    switch ((int)node->src[0]->type) {
#define CPU_BLOCK_ROW(NAME, ...) case GGML_TYPE_##NAME:
#include "types/block_list.inl"
        return node->src[1]->type == GGML_TYPE_F32 && may_round_src1(node);
    default: return false;
    }
}

// What weights of less than eight bits are larger by, as bytes without sign that are multiplied,
// than the type's numbers; 0 where blocks have an offset.
static inline int rounded_bias(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_TQ2_0: return 1;
    case GGML_TYPE_Q3_K: return 4;
    case GGML_TYPE_Q4_0: return 8;
    case GGML_TYPE_MXFP4: return 12;
    case GGML_TYPE_Q5_0: return 16;
    case GGML_TYPE_Q6_K: return 32;
    default: return 0;
    }
}

// The same with AVX-512, where those of types of eight bits are made bytes without sign too.
static inline int quarter_bias(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_NVFP4: return 12;
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_IQ4_NL:
    case GGML_TYPE_IQ4_XS: return 128;
    default: return rounded_bias(type);
    }
}

// Whether src1 may be rounded to BF16, that src0 is, where many columns share a matrix.
static inline bool rounds_to_bf16(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    if (a->type != GGML_TYPE_BF16 || node->src[1]->type != GGML_TYPE_F32 || a->ne[0] % 2)
        return false;
    if (((uintptr_t)a->data | a->nb[1] | a->nb[2] | a->nb[3]) % 4) return false;
    return may_round_src1(node) || ggml_get_op_params_i32(node, 3) == GGML_PREC_BF16;
}

#endif
