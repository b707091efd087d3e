// SPDX-License-Identifier: MIT
// Dot products of two quantised rows, in whole numbers.
#ifndef CPU_QUANT_DOT_H
#define CPU_QUANT_DOT_H

#include "base/kernel.h"

// ggml_vec_dot_t of the types that traits_list.inl lists so: n elements, whole blocks. Every level
// gives the same bits, and so does every nrc. [any-thread]
#define CPU_TRAITS_ROW(name, activation)
#define CPU_ENCODER_ROW(name, activation)
#define CPU_DECODED_ROW(name, activation)
#define CPU_WHOLE_ROW(name, activation)                                                            \
    void CPU_FN(cpu_quant_dot_##name)(int n, float *s, size_t bs, const void *x, size_t bx,        \
                                      const void *y, size_t by, int nrc);
#include "types/traits_list.inl"

// Rows that are best computed together, by level.
enum {
    CPU_DOT_ROWS_scalar = 1,
    CPU_DOT_ROWS_x86_64_v2 = 1,
    CPU_DOT_ROWS_x86_64_v3 = 1,
    CPU_DOT_ROWS_x86_64_v4 = 1,
    CPU_DOT_ROWS_x86_64_v4_vnni = 1,
    CPU_DOT_ROWS_neon = 1,
    CPU_DOT_ROWS_dotprod = 1,
    CPU_DOT_ROWS_i8mm = 2,
    CPU_DOT_ROWS = CPU_PASTE(CPU_DOT_ROWS, CPU_LEVEL),
};

#endif
