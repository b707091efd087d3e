// SPDX-License-Identifier: MIT
// Products of repacked rows with columns that are rounded to bytes.
#ifndef CPU_MUL_REPACKED_H
#define CPU_MUL_REPACKED_H

#include "gemm/gemm.h"
#include "ops/mul_mat/rounded/rounded.h"

// Whether the level has this.
enum {
    CPU_REPACKS_scalar = 0,
    CPU_REPACKS_x86_64_v2 = 0,
    CPU_REPACKS_x86_64_v3 = 1,
    CPU_REPACKS_x86_64_v4 = 1,
    CPU_REPACKS_x86_64_v4_vnni = 1,
    CPU_REPACKS_neon = 0,
    CPU_REPACKS_dotprod = 1,
    CPU_REPACKS_i8mm = 1,
    CPU_REPACKS = CPU_PASTE(CPU_REPACKS, CPU_LEVEL),
};

// How many rows of the type lie side by side in repacked memory; 0 where single tokens are no
// faster with it (docs/performance.md). [any-thread]
int CPU_FN(cpu_repacked_rows)(enum ggml_type type);

// As cpu_mul_rounded(): all numbers of rows are multiples of REPACKED_ROWS. Every result is summed
// in the same order, whatever rows and columns are computed together.
void CPU_FN(cpu_mul_repacked)(const struct gemm_rows *rows, const struct gemm_piece *piece,
                              const struct gemm_column *columns, int64_t n_columns, void *memory);

#endif
