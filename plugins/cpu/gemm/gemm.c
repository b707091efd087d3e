// SPDX-License-Identifier: MIT
// Register tiles of dot products: rows of the first matrix, already F32, by as many columns as the
// registers hold accumulators for. Compiled once for each instruction-set level.
#include "gemm/gemm.h"

#include "simd/simd.h"

enum {
    TILE_ROWS = 4,
    TILE_COLUMNS = VECTORS == 32 ? 4 : 2, // as many as the registers hold accumulators
};

// Elements [t, k), fewer than LANES, in any lanes; the others 0.
CPU_INLINE vf load_rest(const float *x, int64_t t, int64_t k) {
    if (k < LANES) return vf_load_part(x + t, k - t);
    return vf_select(vi_from(LANES - (int32_t)(k - t)), vf_load(x + k - LANES), (vf){0});
}

// y (+)= dot products of n_rows x n_columns; both are constants where this is inlined.
CPU_INLINE void tile(const float *const *a, const struct gemm_column *b, int64_t row, int64_t k0,
                     int64_t k, const int n_rows, const int n_columns) {
    vf sum[TILE_COLUMNS][TILE_ROWS];
    for (int c = 0; c < n_columns; ++c) {
        for (int r = 0; r < n_rows; ++r)
            sum[c][r] = (vf){0};
    }
    int64_t t = 0;
    for (; t + LANES <= k; t += LANES) {
        vf x[TILE_ROWS];
        for (int r = 0; r < n_rows; ++r)
            x[r] = vf_load(a[r] + t);
        for (int c = 0; c < n_columns; ++c) {
            const vf y = vf_load(b[c].x + k0 + t);
            for (int r = 0; r < n_rows; ++r)
                sum[c][r] += x[r] * y;
        }
    }
    if (t < k) {
        vf x[TILE_ROWS];
        for (int r = 0; r < n_rows; ++r)
            x[r] = load_rest(a[r], t, k);
        for (int c = 0; c < n_columns; ++c) {
            const vf y = load_rest(b[c].x + k0, t, k);
            for (int r = 0; r < n_rows; ++r)
                sum[c][r] += x[r] * y;
        }
    }
    for (int c = 0; c < n_columns; ++c) {
        // The depth is walked in pieces that fit the panel: pieces after the first add to what is
        // there.
        float *y = b[c].y + row;
        if (LANES > 1 && n_rows == QUAD) {
            const quad before = k0 == 0 ? (quad){0} : quad_load(y);
            quad_store(y, before + vf_sum_each(sum[c]));
            continue;
        }
        for (int r = 0; r < n_rows; ++r)
            y[r] = (k0 == 0 ? 0.0f : y[r]) + vf_sum(sum[c][r]);
    }
}

// Sizes as constants, so that the compiler keeps the sums in registers.
static void full_tile(const float *const *a, const struct gemm_column *b, int64_t row, int64_t k0,
                      int64_t k) {
    tile(a, b, row, k0, k, TILE_ROWS, TILE_COLUMNS);
}

static void pair_tile(const float *const *a, const struct gemm_column *b, int64_t row, int64_t k0,
                      int64_t k) {
    tile(a, b, row, k0, k, TILE_ROWS, 2);
}

static void tall_tile(const float *const *a, const struct gemm_column *b, int64_t row, int64_t k0,
                      int64_t k) {
    tile(a, b, row, k0, k, TILE_ROWS, 1);
}

static void single_tile(const float *const *a, const struct gemm_column *b, int64_t row, int64_t k0,
                        int64_t k) {
    tile(a, b, row, k0, k, 1, 1);
}

typedef void (*tile_fn)(const float *const *a, const struct gemm_column *b, int64_t row, int64_t k0,
                        int64_t k);

// Columns of the largest tile that fits.
static int widest(int64_t n_columns) {
    return n_columns >= TILE_COLUMNS ? TILE_COLUMNS : n_columns >= 2 ? 2 : 1;
}

// Pointers to elements [k0, k0 + k) of the rows as floats, unpacked into the panel unless they are
// F32.
static void open_panel(const struct gemm_rows *rows, int64_t row, int n_rows, int64_t k0, int64_t k,
                       float *panel, const float **a) {
    char blocks[GEMM_DEPTH / REPACKED_MAX_BLOCK * REPACKED_MAX_BYTES];
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(rows->type);
    for (int r = 0; r < n_rows; ++r) {
        const char *x = gemm_blocks(rows, row + r, k0, k, blocks);
        if (rows->type == GGML_TYPE_F32) {
            a[r] = (const float *)(const void *)x;
        } else {
            unpack(x, panel + r * GEMM_DEPTH, k);
            a[r] = panel + r * GEMM_DEPTH;
        }
    }
}

// Blocks over the depth K, so that a panel of the rows stays in the first-level cache while all
// columns pass over it; results are accumulated in memory from block to block. Rows are taken in
// tiles as large as registers allow, columns in groups of the widest tile.
void CPU_FN(cpu_gemm)(const struct gemm_rows *rows, int64_t row, int n_rows,
                      const struct gemm_column *columns, int64_t n_columns, float *panel) {
    const float *a[GEMM_MAX_ROWS];
    int64_t k0 = 0;
    do {
        const int64_t k = MIN(rows->k - k0, GEMM_DEPTH);
        // Converts the rows to F32 once per block, for all columns.
        open_panel(rows, row, n_rows, k0, k, panel, a);
        for (int64_t c = 0; c < n_columns;) {
            const int width = widest(n_columns - c);
            const tile_fn compute = width == 1 ? tall_tile : width == 2 ? pair_tile : full_tile;
            int r = 0;
            for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS)
                compute(a + r, columns + c, row + r, k0, k);
            // Rows that fill no tile.
            for (; r < n_rows; ++r) {
                for (int i = 0; i < width; ++i)
                    single_tile(a + r, columns + c + i, row + r, k0, k);
            }
            c += width;
        }
        k0 += GEMM_DEPTH;
    } while (k0 < rows->k);
}
