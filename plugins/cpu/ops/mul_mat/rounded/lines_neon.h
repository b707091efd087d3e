// SPDX-License-Identifier: MIT
// Blocks of 32 elements of four rows, multiplied out of registers: a vector holds 16 numbers of one
// row. Products of each row are added to four lanes, then those of all rows are joined, so that
// they are scaled and become floats together. For AArch64.
#ifndef CPU_LINES_NEON_H
#define CPU_LINES_NEON_H

#if !defined(CPU_NEON)
#define CPU_LINES_NEON 0
#else
#define CPU_LINES_NEON 1

#include "ops/mul_mat/rounded/rounded.h"
#include "simd/words.h"
#include "types/blocks.h"

enum { LINES = 4 };

// Results of a column so far; lanes are rows.
struct lane_sums {
    float32x4_t products;
};

// Numbers of a block of the row, larger by rounded_bias().
CPU_INLINE void line_numbers(const struct block_format f, const char *block, int8x16_t *out) {
    if (f.type == GGML_TYPE_Q8_0) {
        const int8_t *qs = ((const block_q8_0 *)(const void *)block)->qs;
        out[0] = vld1q_s8(qs);
        out[1] = vld1q_s8(qs + 16);
        return;
    }
    const uint8x16_t qs = vld1q_u8((const uint8_t *)block + f.bytes - 16);
    const uint8x16_t halves[2] = {vandq_u8(qs, vdupq_n_u8(15)), vshrq_n_u8(qs, 4)};
    CPU_UNROLLED
    for (int i = 0; i < 2; ++i)
        out[i] = f.type == GGML_TYPE_IQ4_NL ? vqtbl1q_s8(vld1q_s8(cpu_iq4_values), halves[i])
                                            : vreinterpretq_s8_u8(halves[i]);
}

// Scales of a block of each row, and offsets where the type has them.
CPU_INLINE void line_factors(const struct block_format f, const char *const *blocks,
                             float32x4_t *scales, float32x4_t *offsets) {
    if (f.offset_at < 0) {
        *scales = (float32x4_t)rows_floats(blocks, f.scale_at);
        return;
    }
    uint32_t pairs[LINES];
    CPU_UNROLLED
    for (int r = 0; r < LINES; ++r)
        memcpy(&pairs[r], blocks[r], sizeof(pairs[r]));
    const ww words = {pairs[0], pairs[1], pairs[2], pairs[3]};
    *scales = (float32x4_t)words_floats(words);
    *offsets = (float32x4_t)words_floats(words >> 16);
}

// What sums of products of biased numbers begin with: lanes that are added up later.
CPU_INLINE void line_start(const enum ggml_type type, const int8_t *numbers, int32_t *lanes) {
    memset(lanes, 0, LINES * sizeof(*lanes));
    lanes[0] = -rounded_bias(type) * (sum_of_16(numbers) + sum_of_16(numbers + 16));
}

// Adds the products of a block of a row and a column to four lanes.
CPU_INLINE int32x4_t dot_line(int32x4_t sum, const int8x16_t *w, const int8x16_t *x) {
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(vdotq_s32(sum, w[0], x[0]), w[1], x[1]);
#else
    // Two products, at most 128 * 127 each, fit 16 bits.
    const int16x8_t low = vmlal_s8(vmull_s8(vget_low_s8(w[0]), vget_low_s8(x[0])),
                                   vget_low_s8(w[1]), vget_low_s8(x[1]));
    const int16x8_t high = vmlal_high_s8(vmull_high_s8(w[0], x[0]), w[1], x[1]);
    return vpadalq_s16(vpadalq_s16(sum, low), high);
#endif
}

// Tiles of four rows that are computed together.
CPU_INLINE int sets_at_once(const struct block_format f, const int columns) {
    (void)f, (void)columns;
    return 1;
}

// Blocks of a row that are computed per turn of the loop over them.
CPU_INLINE int blocks_at_once(const struct block_format f) {
    (void)f;
    return 2;
}

// Adds n blocks of each row, the first of which is multiplied with elements `at` and up.
CPU_INLINE void add_lanes(const struct block_format f, const int sets,
                          struct lane_sums (*sums)[ROUNDED_COLUMNS], const char *const *blocks,
                          const struct rounded *x, const int at, const int n, const int columns) {
    (void)sets;
    CPU_UNROLLED
    for (int i = 0; i < n; ++i) {
        const char *at_block[LINES];
        int8x16_t w[LINES][2];
        float32x4_t scales, offsets = vdupq_n_f32(0);
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r) {
            at_block[r] = blocks[r] + i * f.bytes;
            line_numbers(f, at_block[r], w[r]);
        }
        line_factors(f, at_block, &scales, &offsets);
        const int g = at / ROUNDED_GROUP + i;
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const int8_t *numbers = x[c].numbers + g * ROUNDED_GROUP;
            const int8x16_t column[2] = {vld1q_s8(numbers), vld1q_s8(numbers + 16)};
            const int32x4_t start =
                rounded_bias(f.type) ? vld1q_s32(x[c].starts[g]) : vdupq_n_s32(0);
            int32x4_t dots[LINES];
            CPU_UNROLLED
            for (int r = 0; r < LINES; ++r)
                dots[r] = dot_line(start, w[r], column);
            const int32x4_t joined =
                vpaddq_s32(vpaddq_s32(dots[0], dots[1]), vpaddq_s32(dots[2], dots[3]));
            float32x4_t *sum = &sums[0][c].products;
            if (f.offset_at >= 0) *sum = vfmaq_n_f32(*sum, offsets, x[c].sums32[g]);
            *sum = vfmaq_f32(*sum, vcvtq_f32_s32(joined), vmulq_n_f32(scales, x[c].scales[g]));
        }
    }
}

CPU_INLINE void close_lanes(const struct block_format f, const struct lane_sums *sums, float *y) {
    (void)f;
    vst1q_f32(y, sums->products);
}

#endif
#endif
