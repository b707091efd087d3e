// SPDX-License-Identifier: MIT
// Panels of rows and their products with strips where an instruction adds four products of bytes to
// a lane: the part of gemm_rounded.c, which includes this, for AVX-512 VNNI.
#ifndef CPU_STRIPS_VNNI_H
#define CPU_STRIPS_VNNI_H

#include "ops/mul_mat/rounded/panel_words.h"

enum {
    COLUMN_BIAS = 128, // makes numbers of columns bytes without sign, as the instruction asks
    VECTORS_PER_PANEL = PANEL_ROWS / ROWS,
};

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
            sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8((char)COLUMN_BIAS), q);
        }
        _mm512_store_si512(to->panel->starts + g * to->stride + to->first,
                           _mm512_sub_epi32(_mm512_setzero_si512(), sum));
    }
}

// Lays numbers, scales, offsets and starts of opened rows side by side.
CPU_INLINE void lay_rows(const struct block_format f, const struct opened_rows *o,
                         const struct panel_rows *to) {
    const int64_t groups = to->k / f.group;
    lay_numbers(o, to);
    lay_groups((const float(*)[STRIP_GROUPS])o->scales, groups, to->panel->scales + to->first,
               to->stride);
    if (f.offset_at >= 0)
        lay_groups((const float(*)[STRIP_GROUPS])o->offsets, groups, to->panel->offsets + to->first,
                   to->stride);
    compute_starts(to, groups, f.group);
}

// Four bytes of a column in each lane.
CPU_INLINE __m512i broadcast_four(const uint8_t *x) {
    int32_t four;
    memcpy(&four, x, sizeof(four));
    return _mm512_set1_epi32(four);
}

// Products of a group, numbers from `four` fours on.
CPU_INLINE void multiply_group(const struct strip_panel *a, const struct strip *b, const int group,
                               int64_t four, const int n, const int columns,
                               __m512i (*dots)[VECTORS_PER_PANEL]) {
    const __m512i *numbers = (const __m512i *)(const void *)a->numbers + four * n;
    CPU_UNROLLED
    for (int t = 0; t < group / 4; ++t) {
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m512i x = broadcast_four(b->numbers + ((four + t) * STRIP_COLUMNS + c) * RUN);
            CPU_UNROLLED
            for (int v = 0; v < n; ++v)
                dots[c][v] =
                    _mm512_dpbusd_epi32(dots[c][v], x, _mm512_load_si512(numbers + t * n + v));
        }
    }
}

// The last four are constants where this is inlined.
CPU_INLINE void multiply_tile(const struct strip_panel *a, const struct strip *b,
                              const struct tile *to, const int group, const bool offset,
                              const int n, const int columns) {
    __m512 sums[STRIP_COLUMNS][VECTORS_PER_PANEL];
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < n; ++v)
            sums[c][v] = _mm512_setzero_ps();
    }
    for (int64_t g = 0; g < to->k / group; ++g) {
        __m512i dots[STRIP_COLUMNS][VECTORS_PER_PANEL];
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            CPU_UNROLLED
            for (int v = 0; v < n; ++v)
                dots[c][v] = _mm512_load_si512(a->starts + (g * n + v) * ROWS);
        }
        multiply_group(a, b, group, g * group / 4, n, columns, dots);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
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
    if (to->n_columns < columns || to->n_rows < n * ROWS) {
        float y[STRIP_COLUMNS][PANEL_ROWS];
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            CPU_UNROLLED
            for (int v = 0; v < n; ++v)
                _mm512_storeu_ps(y[c] + v * ROWS, sums[c][v]);
        }
        add_part(to, (const float(*)[PANEL_ROWS])y);
        return;
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < n; ++v) {
            float *y = to->columns[c].y + to->row + v * ROWS;
            _mm512_storeu_ps(y, to->first ? sums[c][v]
                                          : _mm512_add_ps(sums[c][v], _mm512_loadu_ps(y)));
        }
    }
}

#define MULTIPLY(name, group, offset, n)                                                           \
    static void name(const struct strip_panel *a, const struct strip *b, const struct tile *to) {  \
        if (to->n_columns <= STRIP_COLUMNS / 2)                                                    \
            multiply_tile(a, b, to, group, offset, n, STRIP_COLUMNS / 2);                          \
        else                                                                                       \
            multiply_tile(a, b, to, group, offset, n, STRIP_COLUMNS);                              \
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

// What multiplies panels of so many vectors.
static multiply_fn choose_multiply(enum ggml_type type, int group, bool offset, int64_t n_vectors,
                                   bool vnni) {
    (void)type, (void)vnni;
    return multiply_of[group / 32][offset][n_vectors - 1];
}

#endif
