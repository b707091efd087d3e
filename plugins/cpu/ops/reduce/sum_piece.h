// SPDX-License-Identifier: MIT
// How the sum of a whole tensor is cut into pieces: by its shape alone, whatever the number of
// threads.
#ifndef CPU_SUM_PIECE_H
#define CPU_SUM_PIECE_H

#include "ggml-shape.h"

enum { CPU_SUM_PIECE = 4096 }; // elements, about

struct cpu_sum_pieces {
    int64_t count;
    int64_t per_row;   // > 1: each piece is a part of a row
    int64_t rows_each; // otherwise each piece is this many rows
};

// Cuts a tensor into pieces for summation, independently of the number of threads, so that sums
// have the same bits with any number: a long row becomes several pieces, short rows are joined.
static inline struct cpu_sum_pieces cpu_sum_pieces(const struct ggml_tensor *src) {
    const int64_t n = src->ne[0];
    const int64_t rows = ggml_nrows(src);
    if (n > CPU_SUM_PIECE) {
        const int64_t per_row = (n + CPU_SUM_PIECE - 1) / CPU_SUM_PIECE;
        return (struct cpu_sum_pieces){rows * per_row, per_row, 1};
    }
    const int64_t each = n > 0 ? CPU_SUM_PIECE / n : 1;
    return (struct cpu_sum_pieces){(rows + each - 1) / each, 1, each};
}

#endif
