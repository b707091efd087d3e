// SPDX-License-Identifier: MIT
// What products of four rows, a vector of each, are added up by. For rounded_lines.h.
#ifndef CPU_LINE_SUMS_H
#define CPU_LINE_SUMS_H

#include "ops/mul_mat/rounded/rounded.h"
#include "simd/bytes.h"
#include "types/blocks.h"

#if defined(__AVX2__) && !defined(__AVX512BW__)

enum {
    LINES = 4,
    LINE_GROUPS = QK_K / ROUNDED_GROUP,
    SPREAD_SCALES = 4, // vectors of spread[] before the scales of two groups each
};

// Of one column. Joined rows (join_lines()) have a lane of each half of `products[0]`; others a
// vector each. Short blocks have their offsets in `short_offsets`, whose halves have rows as lanes.
struct lane_sums {
    __m256 products[LINES];
    __m256 short_offsets;
};

// Types of eight bits: numbers have a sign.
CPU_INLINE bool is_signed_line(const enum ggml_type type) {
    return type == GGML_TYPE_Q8_0 || type == GGML_TYPE_IQ4_NL || type == GGML_TYPE_IQ4_XS;
}

// The factor of what scales, or offsets, add up to with the sums of a column; 0 where nothing is.
CPU_INLINE float line_sign(const struct block_format f) {
    return f.offset_at >= 0 ? 1.0f : (float)-rounded_bias(f.type);
}

// Products of numbers without sign and x, of which two are added to 16 bits: numbers are below 64.
CPU_INLINE __m256i small_pairs(vb w, const int8_t *x) {
    return _mm256_maddubs_epi16((__m256i)w, _mm256_loadu_si256((const __m256i *)(const void *)x));
}

// The same of any bytes: signs move from w to x.
CPU_INLINE __m256i signed_pairs(vb w, __m256i x) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)w), _mm256_sign_epi8(x, (__m256i)w));
}

// Sums of words of two vectors: four words of each half are of a, then four of b. Processors split
// horizontal additions into more operations than these are.
CPU_INLINE __m256i join_two(__m256i a, __m256i b) {
    return _mm256_add_epi16(_mm256_blend_epi32(a, b, 0xCC), _mm256_alignr_epi8(b, a, 8));
}

// Sums of eight products, or of 16 of four bits: words 2 r and 2 r + 1 of each half are of row r.
// Those of six bits wrap around, until `starts` of the column are added.
CPU_INLINE __m256i join_lines(const __m256i *pairs) {
    const __m256 a = _mm256_castsi256_ps(join_two(pairs[0], pairs[1]));
    const __m256 b = _mm256_castsi256_ps(join_two(pairs[2], pairs[3]));
    return _mm256_add_epi16(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD)));
}

// A float per row, in both halves.
CPU_INLINE __m256 line_quads(quad v) {
    return _mm256_set_m128((__m128)v, (__m128)v);
}

// Float r of each half in all its lanes. By a shuffle: processors may not forward a part of what
// was stored, and loads of it would wait.
CPU_INLINE __m256 line_spread(__m256 v, const int r) {
    switch (r) {
    case 0: return _mm256_permute_ps(v, 0x00);
    case 1: return _mm256_permute_ps(v, 0x55);
    case 2: return _mm256_permute_ps(v, 0xAA);
    default: return _mm256_permute_ps(v, 0xFF);
    }
}

// The factors of each row's block.
CPU_INLINE quad line_factors(const char *const *blocks, const int at) {
    uint64_t halves = 0;
    for (int r = 0; r < LINES; ++r)
        halves |= half_of_four(blocks[r] + at, r);
    return (quad)_mm_cvtph_ps(_mm_cvtsi64_si128((int64_t)halves));
}

#endif
#endif
