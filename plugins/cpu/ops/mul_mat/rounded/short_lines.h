// SPDX-License-Identifier: MIT
// Blocks of 32 elements with one scale, of four rows. Two blocks of nibbles that follow each other
// are multiplied together, half a vector each: 16 bytes of both are loaded once, and the products
// of low and high nibbles add up in place. For rounded_lines.h.
#ifndef CPU_SHORT_LINES_H
#define CPU_SHORT_LINES_H

#include "ops/mul_mat/rounded/line_sums.h"

#if defined(__AVX2__) && !defined(__AVX512BW__)

// Bytes of the fields at `at` of n blocks of a row, one or two: those of the second in the upper
// half.
CPU_INLINE __m256i two_blocks(const struct block_format f, const char *block, const int at,
                              const int n) {
    const __m256i first = _mm256_zextsi128_si256((__m128i)v16b_load(block + at));
    if (n == 1) return first;
    return _mm256_inserti128_si256(first, (__m128i)v16b_load(block + f.bytes + at), 1);
}

// Words of four bytes likewise, in all lanes of their half.
CPU_INLINE __m256i two_words(const struct block_format f, const char *block, const int at,
                             const int n) {
    int32_t words[2] = {0};
    for (int i = 0; i < n; ++i)
        memcpy(&words[i], block + i * f.bytes + at, sizeof(words[i]));
    return _mm256_blend_epi32(_mm256_set1_epi32(words[0]), _mm256_set1_epi32(words[1]), 0xF0);
}

// The halves at `at` of a block of four rows. They are loaded to their places: putting them
// together in general registers takes more operations.
CPU_INLINE __m128i short_halves(const char *const *blocks, const int at) {
    uint16_t half[LINES];
    CPU_UNROLLED
    for (int r = 1; r < LINES; ++r)
        memcpy(&half[r], blocks[r] + at, sizeof(half[r]));
    __m128i halves = (__m128i)v16b_load(blocks[0] + at);
    halves = _mm_insert_epi16(halves, half[1], 1);
    halves = _mm_insert_epi16(halves, half[2], 2);
    return _mm_insert_epi16(halves, half[3], 3);
}

// Pairs of halves that begin a block likewise.
CPU_INLINE __m128i short_heads(const char *const *blocks, const int at) {
    int32_t head[LINES];
    CPU_UNROLLED
    for (int r = 1; r < LINES; ++r)
        memcpy(&head[r], blocks[r] + at, sizeof(head[r]));
    __m128i heads = (__m128i)v16b_load(blocks[0] + at);
    heads = _mm_insert_epi32(heads, head[1], 1);
    heads = _mm_insert_epi32(heads, head[2], 2);
    return _mm_insert_epi32(heads, head[3], 3);
}

// Scales of n blocks of four rows, and offsets: rows are lanes of a half.
CPU_INLINE void short_factors(const struct block_format f, const char *const *blocks, const int n,
                              __m256 *scales, __m256 *offsets) {
    const __m128i none = _mm_setzero_si128();
    if (f.offset_at < 0) {
        const __m128i first = short_halves(blocks, f.scale_at);
        const __m128i second = n == 2 ? short_halves(blocks, f.bytes + f.scale_at) : none;
        *scales = *offsets = _mm256_cvtph_ps(_mm_unpacklo_epi64(first, second));
        return;
    }
    const __m128i first = short_heads(blocks, 0);
    const __m128i second = n == 2 ? short_heads(blocks, f.bytes) : none;
    const __m128i lower = _mm_set1_epi32(0xFFFF);
    *scales = _mm256_cvtph_ps(
        _mm_packus_epi32(_mm_and_si128(first, lower), _mm_and_si128(second, lower)));
    *offsets =
        _mm256_cvtph_ps(_mm_packus_epi32(_mm_srli_epi32(first, 16), _mm_srli_epi32(second, 16)));
}

// 16 where bit 16 * i + j of the words is set, for byte j of a half.
CPU_INLINE vb fifth_bits(__m256i words, const int i) {
    const __m256i index = _mm256_setr_epi64x(0, 0x0101010101010101, 0, 0x0101010101010101);
    const vb spread = (vb)_mm256_shuffle_epi8(words, (__m256i)((vb)index + (uint8_t)(2 * i)));
    const vb set = (vb)_mm256_set1_epi64x((int64_t)0x8040201008040201);
    return (vb)((spread & set) == set) & 16;
}

// The numbers of n blocks of a row: the first 16 of each, then the others. They have no sign but
// for IQ4_NL's.
CPU_INLINE void short_numbers(const struct block_format f, const char *block, const int n,
                              vb *out) {
    const vb qs = (vb)two_blocks(f, block, f.bytes - 16, n);
    out[0] = qs & 15;
    out[1] = vb_bits(qs, 4, 0, 15);
    CPU_UNROLLED
    for (int i = 0; i < 2; ++i) {
        if (f.type == GGML_TYPE_IQ4_NL) out[i] = vb_lookup(cpu_iq4_values, out[i]);
        if (f.type == GGML_TYPE_Q5_0 || f.type == GGML_TYPE_Q5_1)
            out[i] |= fifth_bits(two_words(f, block, f.bytes - 20, n), i);
    }
}

// The products of two vectors of numbers of four rows: lane r of each half is of row r. Sums of 16
// fit into 16 bits if they are of four bits, of eight if they are of five.
CPU_INLINE __m256i short_dots(const enum ggml_type type, vb (*w)[2], const vb *x) {
    const __m256i ones = _mm256_set1_epi16(1);
    const bool fits = type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q4_1;
    __m256i pairs[2][LINES];
    CPU_UNROLLED
    for (int r = 0; r < LINES; ++r) {
        pairs[0][r] = _mm256_maddubs_epi16((__m256i)w[r][0], (__m256i)x[0]);
        pairs[1][r] = _mm256_maddubs_epi16((__m256i)w[r][1], (__m256i)x[1]);
        if (fits) pairs[0][r] = _mm256_add_epi16(pairs[0][r], pairs[1][r]);
    }
    const __m256i first = _mm256_madd_epi16(join_lines(pairs[0]), ones);
    if (fits) return first;
    return _mm256_add_epi32(first, _mm256_madd_epi16(join_lines(pairs[1]), ones));
}

// Adds n blocks, one or two, of four rows times each column.
CPU_INLINE void add_short_lines(const struct block_format f, struct lane_sums *sums,
                                const char *const *blocks, const struct rounded *x, const int at,
                                const int n, const int columns) {
    const __m256i ones = _mm256_set1_epi16(1);
    const int pair = at / (2 * ROUNDED_GROUP);
    __m256 scales, offsets;
    short_factors(f, blocks, n, &scales, &offsets);
    vb w[LINES][2];
    CPU_UNROLLED
    for (int r = 0; r < LINES; ++r)
        short_numbers(f, blocks[r], n, w[r]);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const vb numbers[2] = {vb_load(x[c].numbers + at), vb_load(x[c].numbers + at + 32)};
        const __m256 factors =
            _mm256_mul_ps(scales, _mm256_loadu_ps(x[c].spread[SPREAD_SCALES + pair]));
        __m256 *sum = sums[c].products;
        if (line_sign(f) != 0)
            sums[c].short_offsets =
                _mm256_fmadd_ps(offsets, _mm256_loadu_ps(x[c].spread[pair]), sums[c].short_offsets);
        if (!is_signed_line(f.type)) {
            const __m256i dots = short_dots(f.type, w, numbers);
            sum[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), factors, sum[0]);
            continue;
        }
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r) {
            const __m256i dots = _mm256_add_epi32(
                _mm256_madd_epi16(signed_pairs(w[r][0], (__m256i)numbers[0]), ones),
                _mm256_madd_epi16(signed_pairs(w[r][1], (__m256i)numbers[1]), ones));
            sum[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), line_spread(factors, r), sum[r]);
        }
    }
}

// Adds n blocks of Q8_0.
CPU_INLINE void add_lines_q8_0(struct lane_sums *sums, const char *const *blocks,
                               const struct rounded *x, const int at, const int n,
                               const int columns) {
    CPU_UNROLLED
    for (int i = 0; i < n; ++i) {
        const int block_at = i * (int)sizeof(block_q8_0);
        const quad scales = line_factors(blocks, block_at + offsetof(block_q8_0, d));
        vb w[LINES];
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r)
            w[r] = vb_load(blocks[r] + block_at + offsetof(block_q8_0, qs));
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m256i numbers = (__m256i)vb_load(x[c].numbers + at + i * ROUNDED_GROUP);
            const __m256 factors = line_quads(scales * x[c].scales[at / ROUNDED_GROUP + i]);
            __m256 *sum = sums[c].products;
            CPU_UNROLLED
            for (int r = 0; r < LINES; ++r) {
                const __m256i dots =
                    _mm256_madd_epi16(signed_pairs(w[r], numbers), _mm256_set1_epi16(1));
                sum[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), line_spread(factors, r), sum[r]);
            }
        }
    }
}

// Types whose blocks are multiplied two at a time.
CPU_INLINE bool has_short_pairs(const enum ggml_type type) {
    return type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_0 ||
           type == GGML_TYPE_Q5_1 || type == GGML_TYPE_IQ4_NL;
}

// Numbers of two groups that follow each other take turns, 16 of each; their scales have half a
// vector each. A group without another is followed by zeros.
CPU_INLINE void pair_line_groups(int64_t n_groups, struct rounded *out) {
    if (n_groups % 2 != 0) {
        memset(out->numbers + n_groups * ROUNDED_GROUP, 0, ROUNDED_GROUP);
        out->scales[n_groups] = out->sums32[n_groups] = 0;
    }
    for (int g = 0; g < n_groups; g += 2) {
        int8_t *second = out->numbers + g * ROUNDED_GROUP + 16, *third = second + 16;
        const v16b moved = v16b_load(second);
        memcpy(second, third, sizeof(moved));
        memcpy(third, &moved, sizeof(moved));
        for (int i = 0; i < 8; ++i)
            out->spread[SPREAD_SCALES + g / 2][i] = out->scales[g + i / 4];
    }
}

// Vector i has the sums of groups 2 * i and 2 * i + 1, half a vector each. After
// pair_line_groups().
CPU_INLINE void spread_short_sums(int64_t n_groups, struct rounded *out) {
    for (int g = 0; g < n_groups; g += 2) {
        for (int i = 0; i < 8; ++i)
            out->spread[g / 2][i] = out->sums32[g + i / 4];
    }
}

#endif
#endif
