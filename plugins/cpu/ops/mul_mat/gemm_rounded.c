// SPDX-License-Identifier: MIT
// Lanes hold rows, four numbers of each; four of a column are broadcast. Products of a group are
// added as whole numbers, which is exact, then scaled and added as floats.
#include "ops/mul_mat/gemm_rounded.h"

#include "gemm/interleave.h"
#include "ops/mul_mat/round_group.h"
#include "types/blocks.h"

#if defined(__AVX512VNNI__)

enum {
    ROWS = 16, // of a vector
    VECTORS_PER_PANEL = STRIP_PANEL / ROWS,
    OPEN_ROWS = 4, // at a time
    BIAS = 128,    // makes numbers of columns bytes without sign, which an instruction asks for
};

_Static_assert((int)GEMM_PANEL == (int)STRIP_PANEL,
               "callers hand over as many rows for either product");

static const int8_t group_of[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, size, group, ...) [GGML_TYPE_##NAME] = group,
#include "types/block_list.inl"
};

// --- columns -------------------------------------------------------------------------------------

// Rounds 32 elements of a column to bytes with a scale, and stores them where column c of the
// strip lies. Numbers are biased by 128, since the instruction multiplies unsigned with signed
// bytes; scaled sums per group make up for offsets.
static void round_part(const float *x, int g, const int group, int c, struct strip *out) {
    int8_t numbers[ROUNDED_GROUP];
    const float scale = round_group(x, numbers);
    out->scales[g][c] = scale;
    for (int i = 0; i < ROUNDED_GROUP; i += group) {
        int32_t sum = 0;
        for (int j = 0; j < group; ++j)
            sum += numbers[i + j];
        out->sums[(g * ROUNDED_GROUP + i) / group][c] = scale * (float)sum;
    }
    for (int i = 0; i < ROUNDED_GROUP; ++i)
        numbers[i] = (int8_t)(numbers[i] ^ -BIAS);
    for (int i = 0; i < ROUNDED_GROUP / 4; ++i)
        memcpy(out->numbers[g * ROUNDED_GROUP / 4 + i][c], numbers + 4 * i, 4);
}

// Rounds elements [k0, k0 + k) of up to STRIP_COLUMNS columns; missing columns are 0.
void CPU_FN(cpu_round_strip)(enum ggml_type type, const struct gemm_column *columns,
                             int64_t n_columns, int64_t k0, int64_t k, struct strip *out) {
    const int group = group_of[type];
    if (n_columns < STRIP_COLUMNS) memset(out, 0, sizeof(*out));
    for (int c = 0; c < n_columns; ++c) {
        for (int g = 0; g < k / ROUNDED_GROUP; ++g) {
            const float *x = columns[c].x + k0 + g * ROUNDED_GROUP;
            if (group == 16)
                round_part(x, g, 16, c, out);
            else
                round_part(x, g, 32, c, out);
        }
    }
}

// --- rows ----------------------------------------------------------------------------------------

// Parts of ROWS rows, before they are laid side by side.
struct opened_rows {
    int8_t numbers[ROWS][STRIP_DEPTH];
    float scales[ROWS][STRIP_GROUPS];
    float offsets[ROWS][STRIP_GROUPS];
};

// Panel of ROWS rows: vectors of one group or of four numbers lie `stride` lanes apart.
struct panel_rows {
    const char *const *rows;
    int64_t k;
    struct strip_panel *panel;
    int64_t first, stride; // lanes
};

// Opens block number `block` of OPEN_ROWS rows, several at a time to hide latencies.
CPU_INLINE void open_part(const struct block_format f, const char *const *rows, const int64_t block,
                          const int r, struct opened_rows *out) {
    const int groups = f.size / f.group;
    const char *blocks[OPEN_ROWS];
    struct opened o[OPEN_ROWS];
    const int8_t *q[OPEN_ROWS];
    for (int i = 0; i < OPEN_ROWS; ++i)
        blocks[i] = rows[r + i] + block * f.bytes;
    open_blocks(f, blocks, OPEN_ROWS, o, q);
    for (int i = 0; i < OPEN_ROWS; ++i) {
        memcpy(out->numbers[r + i] + block * f.size, q[i], (size_t)f.size);
        for (int g = 0; g < groups; ++g) {
            out->scales[r + i][block * groups + g] = o[i].scales[g];
            if (f.offset_at >= 0) out->offsets[r + i][block * groups + g] = offsets(f, &o[i])[g];
        }
    }
}

// Transposes scales, or offsets, so that those of one group for 16 rows are one vector.
static void lay_groups(const float (*x)[STRIP_GROUPS], int64_t groups, float *to, int64_t stride) {
    const float *rows[ROWS];
    for (int r = 0; r < ROWS; ++r)
        rows[r] = x[r];
    interleave_16(rows, groups, to, stride);
}

// Four numbers count as one lane, whose bits are moved.
static void lay_numbers(const struct opened_rows *o, const struct panel_rows *to) {
    const float *rows[ROWS];
    for (int r = 0; r < ROWS; ++r)
        rows[r] = (const float *)(const void *)o->numbers[r];
    interleave_16(rows, to->k / 4, (float *)(void *)to->panel->numbers + to->first, to->stride);
}

// What the bias adds to each sum, negated: sums begin with it, and nothing has to be subtracted
// later.
static void compute_starts(const struct panel_rows *to, int64_t groups, int64_t group) {
    const __m512i *numbers = (const __m512i *)(const void *)to->panel->numbers;
    for (int64_t g = 0; g < groups; ++g) {
        __m512i sum = _mm512_setzero_si512();
        for (int64_t t = g * group / 4; t < (g + 1) * group / 4; ++t) {
            const __m512i q = _mm512_load_si512(numbers + (t * to->stride + to->first) / ROWS);
            sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8((char)BIAS), q);
        }
        _mm512_store_si512(to->panel->starts + g * to->stride + to->first,
                           _mm512_sub_epi32(_mm512_setzero_si512(), sum));
    }
}

// Packs k elements of ROWS rows: numbers, scales, offsets and starts, each with rows in lanes.
CPU_INLINE void pack_rows(const struct block_format f, const struct panel_rows *to) {
    struct opened_rows o __attribute__((aligned(64)));
    for (int r = 0; r < ROWS; r += OPEN_ROWS) {
        for (int64_t block = 0; block < to->k / f.size; ++block)
            open_part(f, to->rows, block, r, &o);
    }
    const int64_t groups = to->k / f.group;
    lay_numbers(&o, to);
    lay_groups((const float(*)[STRIP_GROUPS])o.scales, groups, to->panel->scales + to->first,
               to->stride);
    if (f.offset_at >= 0)
        lay_groups((const float(*)[STRIP_GROUPS])o.offsets, groups, to->panel->offsets + to->first,
                   to->stride);
    compute_starts(to, groups, f.group);
}

// --- products ------------------------------------------------------------------------------------

// Results of a tile: row r of column c at columns[c].y[row + r].
struct tile {
    const struct gemm_column *columns;
    int64_t n_columns, row, n_rows;
    int64_t k;
    bool first; // nothing was summed yet
};

// Stores the sums of a tile, or adds them where earlier elements of k have been added.
static void add_part(const struct tile *to, const float (*sums)[STRIP_PANEL]) {
    for (int64_t c = 0; c < to->n_columns; ++c) {
        float *y = to->columns[c].y + to->row;
        for (int64_t r = 0; r < to->n_rows; ++r)
            y[r] = to->first ? sums[c][r] : y[r] + sums[c][r];
    }
}

// Four bytes of a column in each lane.
CPU_INLINE __m512i broadcast_four(const uint8_t *x) {
    int32_t four;
    memcpy(&four, x, sizeof(four));
    return _mm512_set1_epi32(four);
}

// Products of a group, numbers from `four` fours on.
CPU_INLINE void multiply_group(const struct strip_panel *a, const struct strip *b, const int group,
                               int64_t four, const int n, __m512i (*dots)[VECTORS_PER_PANEL]) {
    const __m512i *numbers = (const __m512i *)(const void *)a->numbers + four * n;
    CPU_UNROLLED
    for (int t = 0; t < group / 4; ++t) {
        CPU_UNROLLED
        for (int c = 0; c < STRIP_COLUMNS; ++c) {
            const __m512i x = broadcast_four(b->numbers[four + t][c]);
            CPU_UNROLLED
            for (int v = 0; v < n; ++v)
                dots[c][v] =
                    _mm512_dpbusd_epi32(dots[c][v], x, _mm512_load_si512(numbers + t * n + v));
        }
    }
}

// The last three are constants where this is inlined.
CPU_INLINE void multiply_tile(const struct strip_panel *a, const struct strip *b,
                              const struct tile *to, const int group, const bool offset,
                              const int n) {
    __m512 sums[STRIP_COLUMNS][VECTORS_PER_PANEL];
    CPU_UNROLLED
    for (int c = 0; c < STRIP_COLUMNS; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < n; ++v)
            sums[c][v] = _mm512_setzero_ps();
    }
    for (int64_t g = 0; g < to->k / group; ++g) {
        __m512i dots[STRIP_COLUMNS][VECTORS_PER_PANEL];
        CPU_UNROLLED
        for (int c = 0; c < STRIP_COLUMNS; ++c) {
            CPU_UNROLLED
            for (int v = 0; v < n; ++v)
                dots[c][v] = _mm512_load_si512(a->starts + (g * n + v) * ROWS);
        }
        multiply_group(a, b, group, g * group / 4, n, dots);
        CPU_UNROLLED
        for (int c = 0; c < STRIP_COLUMNS; ++c) {
            const __m512 scale = _mm512_set1_ps(b->scales[g * group / ROUNDED_GROUP][c]);
            const __m512 sum = _mm512_set1_ps(b->sums[g][c]);
            CPU_UNROLLED
            for (int v = 0; v < n; ++v) {
                const int64_t at = (g * n + v) * ROWS;
                const __m512 product =
                    _mm512_mul_ps(_mm512_cvtepi32_ps(dots[c][v]), _mm512_load_ps(a->scales + at));
                sums[c][v] = _mm512_fmadd_ps(product, scale, sums[c][v]);
                if (offset)
                    sums[c][v] = _mm512_fmadd_ps(_mm512_load_ps(a->offsets + at), sum, sums[c][v]);
            }
        }
    }
    if (to->n_columns < STRIP_COLUMNS || to->n_rows < n * ROWS) {
        float y[STRIP_COLUMNS][STRIP_PANEL];
        CPU_UNROLLED
        for (int c = 0; c < STRIP_COLUMNS; ++c) {
            CPU_UNROLLED
            for (int v = 0; v < n; ++v)
                _mm512_storeu_ps(y[c] + v * ROWS, sums[c][v]);
        }
        add_part(to, (const float(*)[STRIP_PANEL])y);
        return;
    }
    CPU_UNROLLED
    for (int c = 0; c < STRIP_COLUMNS; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < n; ++v) {
            float *y = to->columns[c].y + to->row + v * ROWS;
            _mm512_storeu_ps(y, to->first ? sums[c][v]
                                          : _mm512_add_ps(sums[c][v], _mm512_loadu_ps(y)));
        }
    }
}

typedef void (*multiply_fn)(const struct strip_panel *a, const struct strip *b,
                            const struct tile *to);

#define MULTIPLY(name, group, offset, n)                                                           \
    static void name(const struct strip_panel *a, const struct strip *b, const struct tile *to) {  \
        multiply_tile(a, b, to, group, offset, n);                                                 \
    }
#define MULTIPLY_ROW(name, group, offset)                                                          \
    MULTIPLY(name##_1, group, offset, 1)                                                           \
    MULTIPLY(name##_2, group, offset, 2)                                                           \
    MULTIPLY(name##_3, group, offset, 3)
MULTIPLY_ROW(multiply_16, 16, false)
MULTIPLY_ROW(multiply_16_offset, 16, true)
MULTIPLY_ROW(multiply_32, 32, false)
MULTIPLY_ROW(multiply_32_offset, 32, true)

// By group, whether there are offsets, and vectors of rows.
static const multiply_fn multiply_of[2][2][VECTORS_PER_PANEL] = {
    {{multiply_16_1, multiply_16_2, multiply_16_3},
     {multiply_16_offset_1, multiply_16_offset_2, multiply_16_offset_3}},
    {{multiply_32_1, multiply_32_2, multiply_32_3},
     {multiply_32_offset_1, multiply_32_offset_2, multiply_32_offset_3}},
};

struct type_row {
    void (*pack)(const struct panel_rows *to);
    const multiply_fn *multiply;
    int size, bytes; // of a block
};

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void pack_##name(const struct panel_rows *to) {                                         \
        pack_rows(BLOCK_FORMAT(NAME, name, __VA_ARGS__), to);                                      \
    }
#include "types/block_list.inl"

static const struct type_row type_rows[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, size, group, scale_at, offset_at)                                \
    [GGML_TYPE_##NAME] = {pack_##name, multiply_of[group / 32][offset_at >= 0], size,              \
                          sizeof(block_##name)},
#include "types/block_list.inl"
};

// Elements [k0, k0 + k) of n_rows rows; the last one is repeated.
// Packs the panel that all columns pass over.
static void pack_panel(const struct gemm_rows *rows, int64_t row, int64_t n_rows, int64_t n_lanes,
                       int64_t k0, int64_t k, struct strip_panel *panel) {
    const struct type_row *type = &type_rows[rows->type];
    const char *from = rows->data + (size_t)(k0 / type->size * type->bytes);
    for (int64_t v = 0; v < n_lanes; v += ROWS) {
        const char *lanes[ROWS];
        for (int r = 0; r < ROWS; ++r)
            lanes[r] = from + (size_t)(row + MIN(v + r, n_rows - 1)) * rows->stride;
        const struct panel_rows to = {lanes, k, panel, v, n_lanes};
        type->pack(&to);
    }
}

// Multiplies a panel of rows with all columns, STRIP_DEPTH elements at a time, so that the
// packed panel stays in the cache while all strips use it.
static void compute_panel(const struct gemm_rows *rows, const struct tile *all, int64_t k0,
                          int64_t k1, const struct strips *strips, struct strip_panel *panel) {
    const int64_t n_vectors = (all->n_rows + ROWS - 1) / ROWS;
    const multiply_fn multiply = type_rows[rows->type].multiply[n_vectors - 1];
    const struct strip *x = strips->at;
    for (int64_t from = k0; from < k1; from += STRIP_DEPTH, x += strips->stride) {
        struct tile to = *all;
        to.k = MIN(k1 - from, STRIP_DEPTH);
        to.first = from == 0;
        pack_panel(rows, to.row, to.n_rows, n_vectors * ROWS, from, to.k, panel);
        for (int64_t c = 0; c < all->n_columns; c += STRIP_COLUMNS) {
            to.columns = all->columns + c;
            to.n_columns = MIN(all->n_columns - c, STRIP_COLUMNS);
            multiply(panel, x + c / STRIP_COLUMNS, &to);
        }
    }
}

// Multiplies rows by panels of STRIP_PANEL. `strips`: the columns as cpu_round_strip() left
// them.
void CPU_FN(cpu_gemm_rounded)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                              const struct gemm_column *columns, int64_t n_columns, int64_t k0,
                              int64_t k1, const struct strips *strips, struct strip_panel *panel) {
    for (int64_t r = 0; r < n_rows; r += STRIP_PANEL) {
        const struct tile all = {.columns = columns,
                                 .n_columns = n_columns,
                                 .row = row + r,
                                 .n_rows = MIN(n_rows - r, STRIP_PANEL)};
        compute_panel(rows, &all, k0, k1, strips, panel);
    }
}

#else

void CPU_FN(cpu_round_strip)(enum ggml_type type, const struct gemm_column *columns,
                             int64_t n_columns, int64_t k0, int64_t k, struct strip *out) {
    (void)type, (void)columns, (void)n_columns, (void)k0, (void)k, (void)out;
    GGML_UNREACHABLE();
}

// Never called: the levels without the instructions for it don't offer the rounded product.
void CPU_FN(cpu_gemm_rounded)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                              const struct gemm_column *columns, int64_t n_columns, int64_t k0,
                              int64_t k1, const struct strips *strips, struct strip_panel *panel) {
    (void)rows, (void)row, (void)n_rows, (void)columns, (void)n_columns, (void)k0, (void)k1;
    (void)strips, (void)panel;
    GGML_UNREACHABLE();
}

#endif
