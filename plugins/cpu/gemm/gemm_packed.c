// SPDX-License-Identifier: MIT
// Products with many columns, from packed operands: lanes hold rows, the columns' elements are
// broadcast. Packed columns stay in the second-level cache, a panel of rows in the first, a tile of
// results in registers. Rows of BF16 with columns that are rounded to BF16 are the same with a pair
// of numbers in each lane, which is laid and broadcast like a float.
#include "gemm/bf16_pairs.h"
#include "gemm/gemm.h"
#include "gemm/interleave.h"

enum {
    GROUP = LANES == 16 ? 16 : 4, // rows that are interleaved at a time
    PANEL_VECTORS = GEMM_PANEL / LANES,
    STRIP = VECTORS == 32 ? PACKED_STRIP : PACKED_STRIP / 2,
    LINE = 64, // bytes that one prefetch fetches
};

// Products of rows before `end` with the columns, of which elements [k0, k0 + depth) are packed:
// element t of column c of strip s at (s * depth + t) * STRIP + c. Of pairs, each counts as one
// element, which the rows have as F32.
struct product {
    const struct gemm_rows *rows;
    int64_t end;
    const struct gemm_column *columns;
    int64_t n_columns;
    int64_t k0, depth;
    float *unpacked, *panel, *packed;
    const float *panels; // of all rows; NULL: they have to be packed
    bool pairs;
};

// Results of a tile: row r of column c at columns[c].y[row + r].
struct tile {
    const struct gemm_column *columns;
    int n_columns;
    int64_t row;
    int n_rows;
    bool first; // nothing was summed yet
};

// n pairs of floats, rounded.
static void round_pairs(const float *x, int64_t n, float *out) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(out + i, pairs_round(x + 2 * i));
    if (i == n) return;
    float rest[2 * LANES] = {0};
    memcpy(rest, x + 2 * i, (size_t)(n - i) * 2 * sizeof(float));
    vf_store_part(out + i, pairs_round(rest), n - i);
}

// Four columns, of which each part of the depth is rounded before it is laid side by side.
static void pack_pairs(const struct product *p, const float *const *columns, float *to) {
    for (int64_t t = 0; t < p->depth; t += PACKED_DEPTH) {
        const int64_t n = MIN(p->depth - t, PACKED_DEPTH);
        const float *x[QUAD];
        for (int i = 0; i < QUAD; ++i) {
            x[i] = p->unpacked + i * PACKED_DEPTH;
            round_pairs(columns[i] + 2 * (p->k0 + t), n, p->unpacked + i * PACKED_DEPTH);
        }
        interleave_4(x, n, to + t * STRIP, STRIP);
    }
}

// Columns beyond the last one repeat it; their results are not stored.
static void pack_columns(const struct product *p) {
    float *to = p->packed;
    for (int64_t strip = 0; strip < p->n_columns; strip += STRIP, to += STRIP * p->depth) {
        for (int64_t q = 0; q < STRIP; q += QUAD) {
            const float *x[QUAD];
            for (int i = 0; i < QUAD; ++i)
                x[i] = p->columns[MIN(strip + q + i, p->n_columns - 1)].x + (p->pairs ? 0 : p->k0);
            if (p->pairs)
                pack_pairs(p, x, to + q);
            else
                interleave_4(x, p->depth, to + q, STRIP);
        }
    }
}

// Bytes of k elements of a row.
static size_t bytes_of(const struct gemm_rows *rows, int64_t k) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(rows->type);
    return (size_t)(k / traits->blck_size) * traits->type_size;
}

// Elements [k0, k0 + k) of n_rows rows, side by side for each element; n_lanes >= n_rows of them,
// where the last row is repeated.
static void pack_panel(const struct product *p, int64_t row, int n_rows, int n_lanes, int64_t k0,
                       int64_t k) {
    const struct gemm_rows *rows = p->rows;
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(rows->type);
    char blocks[PACKED_DEPTH / REPACKED_MAX_BLOCK * REPACKED_MAX_BYTES];
    for (int r = 0; r < n_lanes; r += GROUP) {
        const float *x[GROUP];
        for (int i = 0; i < GROUP; ++i) {
            const char *from = gemm_blocks(rows, row + MIN(r + i, n_rows - 1), k0, k, blocks);
            x[i] = (const float *)(const void *)from;
            if (rows->type == GGML_TYPE_F32) continue;
            x[i] = p->unpacked + i * PACKED_DEPTH;
            unpack(from, p->unpacked + i * PACKED_DEPTH, k);
        }
        if (LANES == 16)
            interleave_16(x, k, p->panel + r, n_lanes);
        else
            interleave_4(x, k, p->panel + r, n_lanes);
    }
}

// Stores the sums of a tile, or adds them where earlier elements of k have been added.
static void add_part(const struct tile *to, float sum[][GEMM_PANEL]) {
    for (int c = 0; c < to->n_columns; ++c) {
        float *y = to->columns[c].y + to->row;
        for (int r = 0; r < to->n_rows; ++r)
            y[r] = to->first ? sum[c][r] : y[r] + sum[c][r];
    }
}

// What is added to at the end comes meanwhile: results of another part of the depth have left
// caches.
CPU_INLINE void ask_for_results(const struct tile *to, const int n_vectors) {
    for (int c = 0; c < to->n_columns; ++c) {
        for (int v = 0; v < n_vectors; ++v)
            __builtin_prefetch(to->columns[c].y + to->row + v * LANES, 1);
    }
}

// The last three are constants where this is inlined.
CPU_INLINE void multiply_tile(const float *a, const float *b, int64_t k, const struct tile *to,
                              const bool pairs, const int n_vectors, const int width) {
    vf sum[STRIP][PANEL_VECTORS];
    for (int c = 0; c < width; ++c) {
        for (int v = 0; v < n_vectors; ++v)
            sum[c][v] = (vf){0};
    }
    ask_for_results(to, n_vectors);
    for (int64_t t = 0; t < k; ++t) {
        vf x[PANEL_VECTORS];
        for (int v = 0; v < n_vectors; ++v)
            x[v] = vf_load(a + (t * n_vectors + v) * LANES);
        for (int c = 0; c < width; ++c) {
            const float *one = b + t * STRIP + c;
            const vf y = pairs ? pairs_set(one) : vf_set(*one);
            for (int v = 0; v < n_vectors; ++v)
                sum[c][v] = pairs ? pairs_dot(sum[c][v], x[v], y) : sum[c][v] + x[v] * y;
        }
    }
    if (to->n_columns < width || to->n_rows < n_vectors * LANES) {
        float y[STRIP][GEMM_PANEL];
        for (int c = 0; c < width; ++c) {
            for (int v = 0; v < n_vectors; ++v)
                vf_store(y[c] + v * LANES, sum[c][v]);
        }
        add_part(to, y);
        return;
    }
    for (int c = 0; c < width; ++c) {
        for (int v = 0; v < n_vectors; ++v) {
            float *y = to->columns[c].y + to->row + v * LANES;
            vf_store(y, to->first ? sum[c][v] : vf_load(y) + sum[c][v]);
        }
    }
}

typedef void (*multiply_fn)(const float *a, const float *b, int64_t k, const struct tile *to);

#define MULTIPLY(name, pairs, n_vectors)                                                           \
    static void name(const float *a, const float *b, int64_t k, const struct tile *to) {           \
        if (to->n_columns <= STRIP / 2)                                                            \
            multiply_tile(a, b, k, to, pairs, n_vectors, STRIP / 2);                               \
        else                                                                                       \
            multiply_tile(a, b, k, to, pairs, n_vectors, STRIP);                                   \
    }
MULTIPLY(multiply_one, false, 1)
MULTIPLY(multiply_two, false, 2)
MULTIPLY(multiply_all, false, PANEL_VECTORS)
MULTIPLY(multiply_one_pairs, CPU_BF16_PAIRS, 1)
MULTIPLY(multiply_two_pairs, CPU_BF16_PAIRS, 2)
MULTIPLY(multiply_all_pairs, CPU_BF16_PAIRS, PANEL_VECTORS)

// The number of vectors is a constant in each variant, so that the accumulators stay in registers.
static multiply_fn choose_multiply(bool pairs, int n_vectors) {
    switch (n_vectors) {
    case 1: return pairs ? multiply_one_pairs : multiply_one;
    case 2: return pairs ? multiply_two_pairs : multiply_two;
    default: return pairs ? multiply_all_pairs : multiply_all;
    }
}

// Parts of rows that are read next.
struct ahead {
    const char *data;
    size_t size; // bytes of each
    int64_t n_rows;
};

// What follows elements [k0, k0 + k) of the rows from `row` on: the rest of the packed depth, then
// its beginning in the next rows.
static struct ahead ahead_of(const struct product *p, int64_t row, int64_t k0, int64_t k) {
    const bool last = k0 + k == p->k0 + p->depth;
    const int64_t first = last ? MIN(row + GEMM_PANEL, p->end) : row;
    const int64_t from = last ? p->k0 : k0 + k;
    const struct gemm_rows *rows = p->rows;
    return (struct ahead){rows->data + (size_t)first * rows->stride + bytes_of(rows, from),
                          bytes_of(rows, MIN(p->k0 + p->depth - from, PACKED_DEPTH)),
                          MIN(p->end - first, GEMM_PANEL)};
}

// The part-th of n_parts shares.
static void fetch(const struct ahead *next, size_t stride, int64_t part, int64_t n_parts) {
    const int64_t end = next->n_rows * (part + 1) / n_parts;
    for (int64_t r = next->n_rows * part / n_parts; r < end; ++r) {
        for (size_t i = 0; i < next->size; i += LINE)
            __builtin_prefetch(next->data + (size_t)r * stride + i, 0, 2);
    }
}

// Elements [p->k0 + t, p->k0 + t + k) of a panel of rows, packed unless they lie so.
static const float *open_panel(const struct product *p, int64_t row, int n_rows, int n_lanes,
                               int64_t t, int64_t k) {
    if (p->panels) return p->panels + row * p->rows->k + (p->k0 + t) * GEMM_PANEL;
    pack_panel(p, row, n_rows, n_lanes, p->k0 + t, k);
    return p->panel;
}

// A panel of rows with all columns, over the packed depth. Memory is kept busy meanwhile.
static void compute_panel(const struct product *p, int64_t row) {
    const int n_rows = (int)MIN(p->end - row, GEMM_PANEL);
    const bool is_whole = LANES == 1 || p->panels;
    const int n_vectors = is_whole ? PANEL_VECTORS : (n_rows + LANES - 1) / LANES;
    const int64_t n_strips = (p->n_columns + STRIP - 1) / STRIP;
    const multiply_fn multiply = choose_multiply(p->pairs, n_vectors);
    int64_t t = 0;
    do {
        const int64_t k = MIN(p->depth - t, PACKED_DEPTH);
        const struct ahead next = p->panels ? (struct ahead){0} : ahead_of(p, row, p->k0 + t, k);
        const float *a = open_panel(p, row, n_rows, n_vectors * LANES, t, k);
        for (int64_t s = 0; s < n_strips; ++s) {
            const struct tile to = {p->columns + s * STRIP,
                                    (int)MIN(p->n_columns - s * STRIP, STRIP), row, n_rows,
                                    p->k0 + t == 0};
            fetch(&next, p->rows->stride, s, n_strips);
            multiply(a, p->packed + (s * p->depth + t) * STRIP, k, &to);
        }
        t += PACKED_DEPTH;
    } while (t < p->depth);
}

// The three loops around a tile (Goto and van de Geijn, 2008): depth of k so that packed columns
// fit the second-level cache, then panels of rows, then strips of columns.
static void compute(struct product p, int64_t row, float *work) {
    const int64_t padded = (p.n_columns + STRIP - 1) / STRIP * STRIP;
    const int64_t depth = PACKED_FLOATS / padded / PACKED_DEPTH * PACKED_DEPTH;
    p.unpacked = work;
    p.panel = work + PACKED_GROUP * PACKED_DEPTH;
    p.packed = p.panel + PACKED_PANEL * PACKED_DEPTH;
    do {
        p.depth = MIN(p.rows->k - p.k0, depth);
        pack_columns(&p);
        for (int64_t r = row; r < p.end; r += GEMM_PANEL)
            compute_panel(&p, r);
        p.k0 += depth;
    } while (p.k0 < p.rows->k);
}

// Products of plain types in F32.
void CPU_FN(cpu_gemm_packed)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                             const struct gemm_column *columns, int64_t n_columns, float *work) {
    compute((struct product){rows, row + n_rows, columns, n_columns, .pairs = false}, row, work);
}

void CPU_FN(cpu_gemm_panels)(const float *panels, int64_t k, int64_t n_rows,
                             const struct gemm_column *columns, int64_t n_columns, float *work) {
    const struct gemm_rows rows = {.type = GGML_TYPE_F32, .k = k};
    compute((struct product){&rows, n_rows, columns, n_columns, .panels = panels}, 0, work);
}

// Products of BF16 rows with columns as pairs; a pair counts as one F32 element of the panel.
void CPU_FN(cpu_gemm_pairs)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                            const struct gemm_column *columns, int64_t n_columns, float *work) {
    const struct gemm_rows pairs = {rows->data, rows->stride, GGML_TYPE_F32, rows->k / 2, false};
    compute((struct product){&pairs, row + n_rows, columns, n_columns, .pairs = true}, row, work);
}
