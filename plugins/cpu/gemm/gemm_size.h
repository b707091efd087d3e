// SPDX-License-Identifier: MIT
// Sizes of the blocks that gemm.c and gemm_packed.c compute; shared with the work
// functions.
#ifndef CPU_GEMM_SIZE_H
#define CPU_GEMM_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GEMM_DEPTH = 512,   // elements of a row that are unpacked at a time
    GEMM_MAX_ROWS = 32, // rows per call
    GEMM_STREAMS = 4,   // rows that are best read side by side from memory
    GEMM_COLUMNS = 128, // columns that callers hand over at a time
};

// Products with packed operands.
enum {
    PACKED_MIN_COLUMNS = 16,   // fewer are not worth the packing
    PACKED_MIN_ROWS = 48,      // the same
    PACKED_MIN_RESULTS = 4096, // the same
    PACKED_COLUMNS = 256,      // columns that callers hand over at a time
    PACKED_DEPTH = 256,        // elements of a row that are packed at a time: whole blocks
    PACKED_GROUP = 16,         // rows that are unpacked before they are laid side by side, at most
    PACKED_PANEL = 48,         // rows of a panel, at most
    PACKED_STRIP = 8,          // columns of a strip, at most
    PACKED_FLOATS = 131072,    // packed columns, at most: half a megabyte
};

// Whether so many rows and columns are multiplied packed.
static inline bool gemm_packs(int64_t n_rows, int64_t n_columns) {
    return n_columns >= PACKED_MIN_COLUMNS && n_rows >= PACKED_MIN_ROWS &&
           n_columns >= PACKED_MIN_RESULTS / n_rows;
}

// Work memory of a thread that multiplies up to n_columns columns of k elements.
static inline size_t gemm_packed_floats(int64_t n_columns, int64_t k) {
    const int64_t panel = (PACKED_PANEL + PACKED_GROUP) * PACKED_DEPTH;
    if (n_columns >= PACKED_COLUMNS || k >= PACKED_FLOATS) return (size_t)panel + PACKED_FLOATS;
    const int64_t padded = (n_columns + PACKED_STRIP - 1) / PACKED_STRIP * PACKED_STRIP;
    const int64_t all = padded * ((k + PACKED_DEPTH - 1) / PACKED_DEPTH * PACKED_DEPTH);
    return (size_t)(panel + (all < PACKED_FLOATS ? all : PACKED_FLOATS));
}

#endif
