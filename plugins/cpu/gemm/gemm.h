// SPDX-License-Identifier: MIT
// Products of rows of any type with columns of F32: what mul_mat, mul_mat_id and attention have in
// common.
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include "gemm/gemm_size.h"
#include "simd/simd.h"
#include "types/repacked.h"
#include "types/unpack.h"

// Dense rows of k elements.
struct gemm_rows {
    const char *data;
    size_t stride; // bytes between rows
    enum ggml_type type;
    int64_t k;
    bool repacked; // REPACKED_ROWS side by side: `data` is that of a whole matrix
};

// Rows side by side of levels that repack, which have four lanes at least.
enum { REPACKED_ROWS = LANES < 4 ? 4 : LANES };

// Elements [k0, k0 + k) of a row, whole blocks: where they lie, or copied to memory where rows are
// repacked, which holds REPACKED_MAX_BYTES for each REPACKED_MAX_BLOCK.
static inline const char *gemm_blocks(const struct gemm_rows *rows, int64_t row, int64_t k0,
                                      int64_t k, char *memory) {
    if (!rows->repacked) {
        const struct ggml_type_traits *traits = ggml_get_type_traits(rows->type);
        const size_t at = (size_t)(k0 / traits->blck_size) * traits->type_size;
        return rows->data + (size_t)row * rows->stride + at;
    }
    const struct repacked_format f = repacked_format(rows->type, REPACKED_ROWS);
    const char *all = rows->data + (size_t)(row - row % REPACKED_ROWS) * rows->stride;
    repacked_read(f, all + k0 / f.size * f.bytes * REPACKED_ROWS, (int)(row % REPACKED_ROWS),
                  k / f.size, memory);
    return memory;
}

// Rows that few columns are multiplied with lie apart, each a quarter of all further on, so that
// memory is read in as many long streams: rows side by side that are shorter than a page end before
// hardware has found out that they are streams. `tile` < gemm_tiles(n_rows); rows from n_rows on
// are none. Levels with shorter vectors take four rows side by side. Streams are asked for ahead;
// on Zen 3 (LANES is 8) farther ones disturb what hardware fetches by itself.
enum {
    GEMM_APART = LANES >= 8,
    GEMM_AHEAD = LANES == 8 ? 512 : 1536, // bytes
};

// How far ahead of what is read a stream is asked for, in bytes: whole rows if they have gaps.
static inline size_t gemm_ahead(const struct gemm_rows *rows) {
    if (rows->stride <= ggml_row_size(rows->type, rows->k)) return GEMM_AHEAD;
    return (1 + GEMM_AHEAD / rows->stride) * rows->stride;
}

static inline int64_t gemm_tiles(int64_t n_rows) {
    return (n_rows + GEMM_STREAMS - 1) / GEMM_STREAMS;
}

static inline int64_t gemm_tile_row(int64_t n_rows, int64_t tile, int r) {
    return GEMM_APART ? tile + r * gemm_tiles(n_rows) : tile * GEMM_STREAMS + r;
}

// A piece of n_rows rows from `row` on: [begin, end) by number, multiples of GEMM_PIECE except for
// the last end. Which rows those are is the kernel's choice; pieces that make up [0, n_rows)
// compute each row once.
struct gemm_piece {
    int64_t row, n_rows;
    int64_t begin, end;
};

enum { GEMM_PIECE = 16 }; // rows: whole tiles of all kernels

static inline struct gemm_piece gemm_all(int64_t row, int64_t n_rows) {
    return (struct gemm_piece){row, n_rows, 0, n_rows};
}

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

// The same with rows that lie in panels already: element t of row r at
// panels[(r / GEMM_PANEL * k + t) * GEMM_PANEL + r % GEMM_PANEL], for whole panels.
void CPU_FN(cpu_gemm_panels)(const float *panels, int64_t k, int64_t n_rows,
                             const struct gemm_column *columns, int64_t n_columns, float *work);

// As cpu_gemm_packed() with columns rounded to BF16, at levels with CPU_BF16_PAIRS: rows are BF16,
// k is even and data and stride are multiples of four.
void CPU_FN(cpu_gemm_pairs)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                            const struct gemm_column *columns, int64_t n_columns, float *work);

#endif
