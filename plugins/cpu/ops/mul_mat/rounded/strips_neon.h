// SPDX-License-Identifier: MIT
// Panels of rows and their products with strips for AArch64: the part of gemm_rounded.c, which
// includes this, for DOTPROD and I8MM. All bytes have a sign, so nothing is biased. `sdot` adds
// four products of a row and a column to a lane; `smmla` multiplies two rows with two columns,
// eight numbers of each.
#ifndef CPU_STRIPS_NEON_H
#define CPU_STRIPS_NEON_H

#include "ops/mul_mat/rounded/panel_words.h"

enum { COLUMN_BIAS = 0 };

// Lays numbers, scales and offsets of opened rows side by side.
CPU_INLINE void lay_rows(const struct block_format f, const struct opened_rows *o,
                         const struct panel_rows *to) {
    const int64_t groups = to->k / f.group;
    int8_t *numbers = to->panel->numbers;
    for (int64_t k = 0; k < to->k; k += RUN) {
        for (int r = 0; r < ROWS; ++r, numbers += RUN)
            memcpy(numbers, o->numbers[r] + k, RUN);
    }
    for (int64_t g = 0; g < groups; ++g) {
        for (int r = 0; r < ROWS; ++r) {
            to->panel->scales[g * ROWS + r] = o->scales[r][g];
            if (f.offset_at >= 0) to->panel->offsets[g * ROWS + r] = o->offsets[r][g];
        }
    }
}

// --- products ------------------------------------------------------------------------------------

// Half of a panel at a time, so that registers hold the sums of both whole numbers and floats.
enum {
    HALF_ROWS = ROWS / 2,
    HALF_VECTORS = HALF_ROWS / QUAD,
};

#if defined(__ARM_FEATURE_MATMUL_INT8)
// Vectors of sums: lane 2 i + j is of row i and column j of two each.
enum {
    ACROSS = STRIP_COLUMNS / 2,
    DOWN = HALF_ROWS / 2,
};

typedef int32x4_t tile_dots[ACROSS * DOWN];
typedef float32x4_t tile_sums[ACROSS * DOWN];

// Adds the products of RUN numbers of eight rows and four columns.
CPU_INLINE void add_run(const int8_t *w, const int8_t *x, tile_dots dots) {
    const int8x16_t columns[ACROSS] = {vld1q_s8(x), vld1q_s8(x + 16)};
    CPU_UNROLLED
    for (int v = 0; v < DOWN; ++v) {
        const int8x16_t rows = vld1q_s8(w + 16 * v);
        CPU_UNROLLED
        for (int c = 0; c < ACROSS; ++c)
            dots[c * DOWN + v] = vmmlaq_s32(dots[c * DOWN + v], rows, columns[c]);
    }
}

// What each row has, for the lanes of sums; what each column has.
CPU_INLINE void spread_rows(const float *at, float32x4_t *out) {
    CPU_UNROLLED
    for (int v = 0; v < HALF_VECTORS; ++v) {
        const float32x4_t four = vld1q_f32(at + QUAD * v);
        out[2 * v] = vzip1q_f32(four, four);
        out[2 * v + 1] = vzip2q_f32(four, four);
    }
}

CPU_INLINE void spread_columns(const float *at, float32x4_t *out) {
    CPU_UNROLLED
    for (int c = 0; c < ACROSS; ++c) {
        const float32x2_t two = vld1_f32(at + 2 * c);
        out[c] = vcombine_f32(two, two);
    }
}

// sum += row * column, of vectors that were spread.
CPU_INLINE float32x4_t add_product(float32x4_t sum, float32x4_t row, const float32x4_t *columns,
                                   const int c) {
    return vfmaq_f32(sum, row, columns[c]);
}

CPU_INLINE void put_half(tile_sums sums, int row, float (*out)[PANEL_ROWS]) {
    CPU_UNROLLED
    for (int c = 0; c < ACROSS; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < HALF_VECTORS; ++v) {
            const float32x4_t *both = &sums[c * DOWN + 2 * v];
            vst1q_f32(out[2 * c] + row + QUAD * v, vuzp1q_f32(both[0], both[1]));
            vst1q_f32(out[2 * c + 1] + row + QUAD * v, vuzp2q_f32(both[0], both[1]));
        }
    }
}
#else
// Vectors of sums: lanes are rows.
enum {
    ACROSS = STRIP_COLUMNS,
    DOWN = HALF_VECTORS,
};

typedef int32x4_t tile_dots[ACROSS * DOWN];
typedef float32x4_t tile_sums[ACROSS * DOWN];

// Adds the products of RUN numbers of eight rows and four columns.
CPU_INLINE void add_run(const int8_t *w, const int8_t *x, tile_dots dots) {
    const int8x16_t columns = vld1q_s8(x);
    CPU_UNROLLED
    for (int v = 0; v < DOWN; ++v) {
        const int8x16_t rows = vld1q_s8(w + 16 * v);
        dots[v] = vdotq_laneq_s32(dots[v], rows, columns, 0);
        dots[DOWN + v] = vdotq_laneq_s32(dots[DOWN + v], rows, columns, 1);
        dots[2 * DOWN + v] = vdotq_laneq_s32(dots[2 * DOWN + v], rows, columns, 2);
        dots[3 * DOWN + v] = vdotq_laneq_s32(dots[3 * DOWN + v], rows, columns, 3);
    }
}

// What each row has, for the lanes of sums; what each column has.
CPU_INLINE void spread_rows(const float *at, float32x4_t *out) {
    CPU_UNROLLED
    for (int v = 0; v < DOWN; ++v)
        out[v] = vld1q_f32(at + QUAD * v);
}

CPU_INLINE void spread_columns(const float *at, float32x4_t *out) {
    out[0] = vld1q_f32(at);
}

// sum += row * column, of vectors that were spread.
CPU_INLINE float32x4_t add_product(float32x4_t sum, float32x4_t row, const float32x4_t *columns,
                                   const int c) {
    switch (c) {
    case 0: return vfmaq_laneq_f32(sum, row, columns[0], 0);
    case 1: return vfmaq_laneq_f32(sum, row, columns[0], 1);
    case 2: return vfmaq_laneq_f32(sum, row, columns[0], 2);
    default: return vfmaq_laneq_f32(sum, row, columns[0], 3);
    }
}

CPU_INLINE void put_half(tile_sums sums, int row, float (*out)[PANEL_ROWS]) {
    CPU_UNROLLED
    for (int c = 0; c < ACROSS; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < DOWN; ++v)
            vst1q_f32(out[c] + row + QUAD * v, sums[c * DOWN + v]);
    }
}
#endif

_Static_assert(DOWN == 8 / ACROSS, "sums that are kept in step");

// Sums advance together: compilers would finish some of them first, with what all need in
// registers.
#define KEEP_IN_STEP(dots)                                                                         \
    __asm__(""                                                                                     \
            : "+w"((dots)[0]), "+w"((dots)[1]), "+w"((dots)[2]), "+w"((dots)[3]), "+w"((dots)[4]), \
              "+w"((dots)[5]), "+w"((dots)[6]), "+w"((dots)[7]))

// Adds the products of group g with the rows from `row` on, scaled.
CPU_INLINE void add_group(const struct strip_panel *a, const struct strip *b, const int group,
                          const bool offset, int64_t g, int row, tile_sums sums) {
    tile_dots dots;
    CPU_UNROLLED
    for (int i = 0; i < ACROSS * DOWN; ++i)
        dots[i] = vdupq_n_s32(0);
    const int8_t *w = a->numbers + g * group * ROWS + row * RUN;
    const int8_t *x = (const int8_t *)b->numbers + g * group * STRIP_COLUMNS;
    CPU_UNROLLED
    for (int k = 0; k < group; k += RUN) {
        add_run(w + k * ROWS, x + k * STRIP_COLUMNS, dots);
        KEEP_IN_STEP(dots);
    }
    float32x4_t scales[DOWN], offsets[DOWN], of_columns[ACROSS], column_sums[ACROSS];
    spread_rows(a->scales + g * ROWS + row, scales);
    spread_columns(b->scales[g * group / ROUNDED_GROUP], of_columns);
    if (offset) {
        spread_rows(a->offsets + g * ROWS + row, offsets);
        spread_columns(b->sums[g], column_sums);
    }
    CPU_UNROLLED
    for (int c = 0; c < ACROSS; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < DOWN; ++v) {
            const int i = c * DOWN + v;
            const float32x4_t product = vmulq_f32(vcvtq_f32_s32(dots[i]), scales[v]);
            if (offset) sums[i] = add_product(sums[i], offsets[v], column_sums, c);
            sums[i] = add_product(sums[i], product, of_columns, c);
        }
    }
}

// The last two are constants where this is inlined.
CPU_INLINE void multiply_tile(const struct strip_panel *a, const struct strip *b,
                              const struct tile *to, const int group, const bool offset) {
    float all[STRIP_COLUMNS][PANEL_ROWS];
    for (int row = 0; row < to->n_rows; row += HALF_ROWS) {
        tile_sums sums;
        CPU_UNROLLED
        for (int i = 0; i < ACROSS * DOWN; ++i)
            sums[i] = vdupq_n_f32(0);
        for (int64_t g = 0; g < to->k / group; ++g)
            add_group(a, b, group, offset, g, row, sums);
        put_half(sums, row, all);
    }
    add_part(to, (const float(*)[PANEL_ROWS])all);
}

#define MULTIPLY(name, group, offset)                                                              \
    static void name(const struct strip_panel *a, const struct strip *b, const struct tile *to) {  \
        multiply_tile(a, b, to, group, offset);                                                    \
    }
MULTIPLY(multiply_16, 16, false)
MULTIPLY(multiply_16_offset, 16, true)
MULTIPLY(multiply_32, 32, false)
MULTIPLY(multiply_32_offset, 32, true)

static multiply_fn choose_multiply(enum ggml_type type, int group, bool offset, int64_t n_vectors,
                                   bool vnni) {
    (void)type, (void)n_vectors, (void)vnni;
    if (group == 16) return offset ? multiply_16_offset : multiply_16;
    return offset ? multiply_32_offset : multiply_32;
}

#endif
