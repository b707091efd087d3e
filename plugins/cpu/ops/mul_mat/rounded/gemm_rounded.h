// SPDX-License-Identifier: MIT
// Products of quantised rows with many columns that are rounded to bytes: whole numbers are
// multiplied.
#ifndef CPU_GEMM_ROUNDED_H
#define CPU_GEMM_ROUNDED_H

#include "gemm/gemm.h"
#include "ops/mul_mat/rounded/rounded.h"

// Whether the level has this, and so multiplies all but few columns.
enum {
    CPU_STRIPS_scalar = 0,
    CPU_STRIPS_x86_64_v2 = 1,
    CPU_STRIPS_x86_64_v3 = 1,
    CPU_STRIPS_x86_64_v4 = 1,
    CPU_STRIPS_x86_64_v4_vnni = 1,
    CPU_STRIPS_neon = 0,
    CPU_STRIPS_dotprod = 1,
    CPU_STRIPS_i8mm = 1,
    CPU_STRIPS = CPU_PASTE(CPU_STRIPS, CPU_LEVEL),
};

// Whether pairs of products are added in 16 bits, for which some types' numbers are too large.
enum {
#if defined(__SSE4_1__) && !defined(__AVX512VNNI__)
    STRIPS_OF_PAIRS = 1,
#else
    STRIPS_OF_PAIRS = 0,
#endif
};

// Strips that follow each other for the same columns and STRIP_DEPTH elements.
static inline int strip_parts(enum ggml_type type) {
    return STRIPS_OF_PAIRS ? most_strip_parts(type) : 1;
}

// Part of the strips of a product's columns: that of columns s, d deep, is at[d * stride + s *
// strip_parts()].
struct strips {
    struct strip *at;
    int64_t stride;
    bool vnni; // see struct cpu_task
};

// Rounds elements from k0 on, at most STRIP_DEPTH, of up to STRIP_COLUMNS columns, to strip_parts()
// strips.
void CPU_FN(cpu_round_strip)(enum ggml_type type, const struct gemm_column *columns,
                             int64_t n_columns, int64_t k0, int64_t k, struct strip *out);

// As cpu_gemm() for any number of rows and columns, over elements [k0, k1), where k0 is a multiple
// of STRIP_DEPTH and the strips begin: results are added to where it isn't 0. The panel is work
// memory.
void CPU_FN(cpu_gemm_rounded)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                              const struct gemm_column *columns, int64_t n_columns, int64_t k0,
                              int64_t k1, const struct strips *strips, struct strip_panel *panel);

#endif
