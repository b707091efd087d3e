// SPDX-License-Identifier: MIT
// Panels of rows and their products with strips for AArch64: the part of gemm_rounded.c, which
// includes this, for DOTPROD and I8MM. All bytes have a sign, so nothing is biased. `sdot` adds
// four products of a row and a column to a lane; `smmla` multiplies two rows with two columns,
// eight numbers of each.
#ifndef CPU_STRIPS_NEON_H
#define CPU_STRIPS_NEON_H

#include "ops/mul_mat/rounded/panel_words.h"

enum {
    COLUMN_BIAS = 0,
    VECTORS_PER_PANEL = ROWS / QUAD,
};

typedef int32x4_t tile_dots[STRIP_COLUMNS][VECTORS_PER_PANEL]; // lanes are rows

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

// No level of this family repacks.
static bool pack_repacked(const struct gemm_rows *rows, int64_t row, int64_t n_rows, int64_t k0,
                          int64_t k, size_t ahead, struct strip_panel *panel) {
    (void)rows, (void)row, (void)n_rows, (void)k0, (void)k, (void)ahead, (void)panel;
    return false;
}

// --- products ------------------------------------------------------------------------------------

#if defined(__ARM_FEATURE_MATMUL_INT8)
// Products of a group of numbers, the first of which is number k of the panel and of the strip.
CPU_INLINE void multiply_group(const struct strip_panel *a, const struct strip *b, const int group,
                               int64_t k, tile_dots dots) {
    // Lane 2 i + j is of row i and column j of two each.
    int32x4_t pairs[STRIP_COLUMNS / 2][2 * VECTORS_PER_PANEL];
    CPU_UNROLLED
    for (int v = 0; v < 2 * VECTORS_PER_PANEL; ++v)
        pairs[0][v] = pairs[1][v] = vdupq_n_s32(0);
    for (int64_t from = k; from < k + group; from += RUN) {
        const int8_t *x = (const int8_t *)b->numbers + from * STRIP_COLUMNS;
        const int8_t *w = a->numbers + from * ROWS;
        const int8x16_t first = vld1q_s8(x), second = vld1q_s8(x + 16);
        CPU_UNROLLED
        for (int v = 0; v < 2 * VECTORS_PER_PANEL; ++v) {
            const int8x16_t rows = vld1q_s8(w + 16 * v);
            pairs[0][v] = vmmlaq_s32(pairs[0][v], rows, first);
            pairs[1][v] = vmmlaq_s32(pairs[1][v], rows, second);
        }
    }
    CPU_UNROLLED
    for (int c = 0; c < STRIP_COLUMNS; c += 2) {
        CPU_UNROLLED
        for (int v = 0; v < VECTORS_PER_PANEL; ++v) {
            const int32x4_t low = pairs[c / 2][2 * v], high = pairs[c / 2][2 * v + 1];
            dots[c][v] = vuzp1q_s32(low, high);
            dots[c + 1][v] = vuzp2q_s32(low, high);
        }
    }
}
#else
CPU_INLINE void multiply_group(const struct strip_panel *a, const struct strip *b, const int group,
                               int64_t k, tile_dots dots) {
    CPU_UNROLLED
    for (int c = 0; c < STRIP_COLUMNS; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < VECTORS_PER_PANEL; ++v)
            dots[c][v] = vdupq_n_s32(0);
    }
    for (int64_t from = k; from < k + group; from += RUN) {
        const int8x16_t x = vld1q_s8((const int8_t *)b->numbers + from * STRIP_COLUMNS);
        const int8_t *w = a->numbers + from * ROWS;
        CPU_UNROLLED
        for (int v = 0; v < VECTORS_PER_PANEL; ++v) {
            const int8x16_t rows = vld1q_s8(w + 16 * v);
            dots[0][v] = vdotq_laneq_s32(dots[0][v], rows, x, 0);
            dots[1][v] = vdotq_laneq_s32(dots[1][v], rows, x, 1);
            dots[2][v] = vdotq_laneq_s32(dots[2][v], rows, x, 2);
            dots[3][v] = vdotq_laneq_s32(dots[3][v], rows, x, 3);
        }
    }
}
#endif

// The last two are constants where this is inlined. Sums of floats stay in the first level of
// cache: registers are for those of whole numbers.
CPU_INLINE void multiply_tile(const struct strip_panel *a, const struct strip *b,
                              const struct tile *to, const int group, const bool offset) {
    float sums[STRIP_COLUMNS][ROWS] = {{0}};
    for (int64_t g = 0; g < to->k / group; ++g) {
        tile_dots dots;
        multiply_group(a, b, group, g * group, dots);
        CPU_UNROLLED
        for (int c = 0; c < STRIP_COLUMNS; ++c) {
            const float scale = b->scales[g * group / ROUNDED_GROUP][c], sum = b->sums[g][c];
            CPU_UNROLLED
            for (int v = 0; v < VECTORS_PER_PANEL; ++v) {
                float *y = sums[c] + QUAD * v;
                const int64_t at = g * ROWS + QUAD * v;
                const float32x4_t product =
                    vmulq_f32(vcvtq_f32_s32(dots[c][v]), vld1q_f32(a->scales + at));
                float32x4_t so_far = vld1q_f32(y);
                if (offset) so_far = vfmaq_n_f32(so_far, vld1q_f32(a->offsets + at), sum);
                vst1q_f32(y, vfmaq_n_f32(so_far, product, scale));
            }
        }
    }
    add_part(to, (const float(*)[PANEL_ROWS])sums);
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
