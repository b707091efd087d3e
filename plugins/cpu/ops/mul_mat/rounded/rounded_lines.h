// SPDX-License-Identifier: MIT
// Blocks of four rows, multiplied out of registers: a vector holds 32 numbers of one row, as bytes
// without sign where a type has less than eight bits. What is added to make them so, like an
// offset, is due to a column's sums. The products of small numbers are added up until one vector
// has those of all four rows, so that they are scaled and become floats together. For levels with
// AVX2 and no AVX-512, where rounded_rows.h is better.
#ifndef CPU_ROUNDED_LINES_H
#define CPU_ROUNDED_LINES_H

#include "ops/mul_mat/rounded/short_lines.h"

#if defined(__AVX2__) && !defined(__AVX512BW__)

// --- blocks of 256 with scales of groups ---------------------------------------------------------

// Groups g and g + 2 of Q3_K are moved together, g % 4 < 2, and their third bits are looked up.
CPU_INLINE vb line_pair_q3_K(const block_q3_K *b, const int g) {
    static const int8_t third[2][16] = {{0, 4, 0, 4, 64, 68, 64, 68, 0, 4, 0, 4, 64, 68, 64, 68},
                                        {0, 0, 4, 4, 0, 0, 4, 4, 64, 64, 68, 68, 64, 64, 68, 68}};
    const vb high = vb_bits(vb_load(b->hmask), g / 4 * 4, 0, 15);
    return vb_bits(vb_load(b->qs + 32 * (g / 4)), 2 * (g % 2), 0, 0x33) |
           vb_lookup(third[g % 2], high);
}

// Numbers of group g of 32, of types other than Q4_K.
CPU_INLINE vb line_numbers_256(const enum ggml_type type, const char *block, const int g) {
    const void *b = block;
    switch (type) {
    case GGML_TYPE_Q2_K:
        return vb_bits(vb_load(((const block_q2_K *)b)->qs + 32 * (g / 4)), 2 * (g % 4), 0, 3);
    case GGML_TYPE_Q3_K: {
        const vb both = line_pair_q3_K(b, g);
        return g % 4 < 2 ? both & 15 : vb_bits(both, 4, 0, 15);
    }
    case GGML_TYPE_Q5_K: {
        const block_q5_K *q5 = b;
        return vb_bits(vb_load(q5->qs + 32 * (g / 2)), 4 * (g % 2), 0, 15) |
               vb_bits(vb_load(q5->qh), g, 4, 16);
    }
    default: {
        const block_q6_K *q6 = b;
        const int half = g / 4, i = g % 4;
        return vb_bits(vb_load(q6->ql + 64 * half + 32 * (i % 2)), 4 * (i / 2), 0, 15) |
               vb_bits(vb_load(q6->qh + 32 * half), 2 * i, 4, 48);
    }
    }
}

// Scales of four blocks, and minima where the type has them, as whole numbers: byte 4 * r + i of
// vector j is of group 4 * j + i of row r. Their factors are of a row in a lane of each half.
struct line_scales {
    __m128i scales[4], mins[4];
    __m256 factors, offsets;
};

// Word j of the 16 bytes at `at` of each block.
CPU_INLINE void transpose_words(const char *const *blocks, const int at, __m128i *out) {
    __m128i rows[LINES];
    CPU_UNROLLED
    for (int r = 0; r < LINES; ++r)
        rows[r] = (__m128i)v16b_load(blocks[r] + at);
    const __m128i a = _mm_unpacklo_epi32(rows[0], rows[1]),
                  b = _mm_unpackhi_epi32(rows[0], rows[1]);
    const __m128i c = _mm_unpacklo_epi32(rows[2], rows[3]),
                  d = _mm_unpackhi_epi32(rows[2], rows[3]);
    out[0] = _mm_unpacklo_epi64(a, c);
    out[1] = _mm_unpackhi_epi64(a, c);
    out[2] = _mm_unpacklo_epi64(b, d);
    out[3] = _mm_unpackhi_epi64(b, d);
}

// Bits `from` and up of each byte moved to bits `to` and up; `mask` keeps those that are wanted.
CPU_INLINE __m128i scale_bits(__m128i v, const int from, const int to, const int mask) {
    const __m128i moved = from > to ? _mm_srli_epi16(v, from - to) : _mm_slli_epi16(v, to - from);
    return _mm_and_si128(moved, _mm_set1_epi8((char)mask));
}

// Six bits each: the last four scales and minima have their lower bits in the third word. A word of
// both factors precedes them.
CPU_INLINE void open_line_scales_k4(const char *const *blocks, struct line_scales *out) {
    const __m128i even = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13);
    __m128i words[4];
    transpose_words(blocks, offsetof(block_q4_K, d), words);
    out->factors = _mm256_cvtph_ps(_mm_shuffle_epi8(words[0], even));
    out->offsets = _mm256_cvtph_ps(_mm_shuffle_epi8(_mm_srli_epi32(words[0], 16), even));
    out->scales[0] = scale_bits(words[1], 0, 0, 63);
    out->mins[0] = scale_bits(words[2], 0, 0, 63);
    out->scales[1] = scale_bits(words[3], 0, 0, 15) | scale_bits(words[1], 6, 4, 48);
    out->mins[1] = scale_bits(words[3], 4, 0, 15) | scale_bits(words[2], 6, 4, 48);
}

// Six bits each: lower halves in the first two words, the upper two bits in the third.
CPU_INLINE void open_line_scales_q3_K(const char *const *blocks, struct line_scales *out) {
    __m128i words[4]; // the first is not of the scales: their 12 bytes are the last of 16
    transpose_words(blocks, offsetof(block_q3_K, scales) - 4, words);
    CPU_UNROLLED
    for (int j = 0; j < 4; ++j) {
        const __m128i low = scale_bits(words[1 + j % 2], j / 2 * 4, 0, 15);
        const __m128i all = low | scale_bits(words[3], 2 * j, 4, 48);
        out->scales[j] = _mm_sub_epi8(all, _mm_set1_epi8(32));
    }
}

CPU_INLINE void open_line_scales_q2_K(const char *const *blocks, struct line_scales *out) {
    __m128i words[4];
    transpose_words(blocks, offsetof(block_q2_K, scales), words);
    out->offsets = line_quads(line_factors(blocks, offsetof(block_q2_K, dmin)));
    CPU_UNROLLED
    for (int j = 0; j < 4; ++j) {
        out->scales[j] = scale_bits(words[j], 0, 0, 15);
        out->mins[j] = scale_bits(words[j], 4, 0, 15);
    }
}

CPU_INLINE void open_line_scales(const struct block_format f, const char *const *blocks,
                                 struct line_scales *out) {
    if (f.type == GGML_TYPE_Q4_K || f.type == GGML_TYPE_Q5_K) {
        open_line_scales_k4(blocks, out);
        return;
    }
    out->factors = line_quads(line_factors(blocks, f.scale_at));
    switch (f.type) {
    case GGML_TYPE_Q3_K: open_line_scales_q3_K(blocks, out); break;
    case GGML_TYPE_Q2_K: open_line_scales_q2_K(blocks, out); break;
    default: transpose_words(blocks, offsetof(block_q6_K, scales), out->scales);
    }
}

// The indices that spread bytes i + 4 r of row r to upper halves of words, two of each row.
#define SPREAD(i) ((int32_t)(0x00800080u + 0x01000100u * (uint32_t)(i)))

// 256 times the scales of two groups, or of one twice, in a word for each that join_lines() makes:
// `first` in the lower half. Such factors need no sign extension.
CPU_INLINE __m256i joined_scales(const struct line_scales *s, const int first, const int last) {
    const int i = first % 4, j = last % 4;
    const __m256i index =
        _mm256_setr_epi32(SPREAD(i), SPREAD(i + 4), SPREAD(i + 8), SPREAD(i + 12), SPREAD(j),
                          SPREAD(j + 4), SPREAD(j + 8), SPREAD(j + 12));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(s->scales[first / 4]), index);
}

#undef SPREAD

// Types of blocks of 256 whose groups have a minimum.
CPU_INLINE bool line_has_offsets(const enum ggml_type type) {
    return type == GGML_TYPE_Q2_K || type == GGML_TYPE_Q4_K || type == GGML_TYPE_Q5_K;
}

// Vector 4 * j + i has the sum of group 8 * j + i in the lower half, that of group 8 * j + i + 4
// in the other.
CPU_INLINE void spread_line_sums(const enum ggml_type type, struct rounded *out) {
    const bool has_halves = type == GGML_TYPE_Q2_K;
    const float *sums = has_halves ? out->sums : out->sums32;
    for (int v = 0; v < (has_halves ? 8 : 4); ++v) {
        for (int i = 0; i < 8; ++i)
            out->spread[v][i] = sums[v / 4 * 8 + v % 4 + i / 4 * 4];
    }
}

// products -= factor of the row * sum over groups of minima times the sums of the column; lanes
// are rows. What is rounded is said by intrinsics here and below: compilers fuse where both
// operations end up in one basic block, and a row's result must not depend on its place in a tile.
CPU_INLINE void add_line_offsets(const struct block_format f, struct lane_sums *sums,
                                 const struct line_scales *s, const struct rounded *x,
                                 const int columns) {
    __m256 offsets[ROUNDED_COLUMNS];
    CPU_UNROLLED
    for (int v = 0; v < f.size / f.group / 2; ++v) {
        const int j = v / 4 * 2, i = v % 4;
        const __m256i mins = _mm256_set_m128i(s->mins[j + 1], s->mins[j]);
        const __m256i moved = i == 0 ? mins : _mm256_srli_epi32(mins, 8 * i);
        const __m256i of_rows = i == 3 ? moved : _mm256_and_si256(moved, _mm256_set1_epi32(255));
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            if (v == 0) offsets[c] = _mm256_setzero_ps();
            offsets[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(of_rows),
                                         _mm256_loadu_ps(x[c].spread[v]), offsets[c]);
        }
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        sums[c].products[0] = _mm256_fnmadd_ps(offsets[c], s->offsets, sums[c].products[0]);
}

// What is multiplied with products of groups of 32: the whole scales of the rows, then the columns'
// own.
CPU_INLINE void add_joined(__m256 *dots, __m256i joined, __m256i scales, __m256 of_column) {
    const __m256i scaled = _mm256_madd_epi16(joined, scales);
    *dots = _mm256_fmadd_ps(_mm256_cvtepi32_ps(scaled), of_column, *dots);
}

// Two groups at a time, half a vector each: low nibbles are the first. So the products of the
// halves of a group add up in place, and half as many are joined; those of five bits would not fit.
CPU_INLINE void dot_lines_q4_K(const struct line_scales *s, const char *const *blocks,
                               const struct rounded *x, const int columns, __m256 *dots) {
    const __m256i shifts = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    CPU_UNROLLED
    for (int g = 0; g < LINE_GROUPS; g += 2) {
        __m256i pairs[ROUNDED_COLUMNS][LINES];
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r) {
            const uint8_t *qs = ((const block_q4_K *)(const void *)blocks[r])->qs + 16 * g;
            CPU_UNROLLED
            for (int i = 0; i < 2; ++i) {
                const __m256i both = _mm256_broadcastsi128_si256((__m128i)v16b_load(qs + 16 * i));
                const vb w = (vb)_mm256_srlv_epi32(both, shifts) & 15;
                CPU_UNROLLED
                for (int c = 0; c < columns; ++c) {
                    const __m256i products = small_pairs(w, x[c].numbers + ROUNDED_GROUP * (g + i));
                    pairs[c][r] = i == 0 ? products : _mm256_add_epi16(pairs[c][r], products);
                }
            }
        }
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            add_joined(&dots[c], join_lines(pairs[c]), joined_scales(s, g, g + 1),
                       _mm256_loadu_ps(x[c].spread[SPREAD_SCALES + g / 2]));
        }
    }
}

// Types whose numbers have more bits, or whose groups are of 16.
CPU_INLINE void dot_lines(const struct block_format f, const struct line_scales *s,
                          const char *const *blocks, const struct rounded *x, const int columns,
                          __m256 *dots) {
    CPU_UNROLLED
    for (int i = 0; i < LINE_GROUPS; ++i) {
        const int g = f.type == GGML_TYPE_Q3_K ? i / 4 * 4 + i / 2 % 2 + i % 2 * 2 : i;
        vb w[LINES];
        const __m256i scales =
            f.group == 16 ? joined_scales(s, 2 * g, 2 * g + 1) : joined_scales(s, g, g);
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r)
            w[r] = line_numbers_256(f.type, blocks[r], g);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            __m256i pairs[LINES];
            CPU_UNROLLED
            for (int r = 0; r < LINES; ++r)
                pairs[r] = small_pairs(w[r], x[c].numbers + ROUNDED_GROUP * g);
            __m256i joined = join_lines(pairs);
            if (rounded_bias(f.type))
                joined = _mm256_add_epi16(joined, (__m256i)vb_load(x[c].starts[g]));
            add_joined(&dots[c], joined, scales, _mm256_set1_ps(x[c].scales[g]));
        }
    }
}

// Adds a block of 256 elements of four rows times each column. The scales of groups are multiplied
// with as whole numbers; the row's factor comes last.
CPU_INLINE void add_lines_256(const struct block_format f, struct lane_sums *sums,
                              const char *const *blocks, const struct rounded *x,
                              const int columns) {
    struct line_scales s;
    __m256 dots[ROUNDED_COLUMNS];
    open_line_scales(f, blocks, &s);
    if (f.offset_at >= 0) add_line_offsets(f, sums, &s, x, columns);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        dots[c] = _mm256_setzero_ps();
    if (f.type == GGML_TYPE_Q4_K)
        dot_lines_q4_K(&s, blocks, x, columns, dots);
    else
        dot_lines(f, &s, blocks, x, columns, dots);
    const __m256 factors = _mm256_mul_ps(s.factors, _mm256_set1_ps(0x1p-8f));
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        sums[c].products[0] = _mm256_fmadd_ps(dots[c], factors, sums[c].products[0]);
}

// --- IQ4_XS --------------------------------------------------------------------------------------

// Scales of the groups of a block as words: word i of a half is of group 2 * i, of the other half
// of the group after it. Six bits each: the lower four are nibbles; the upper two, which lie side
// by side, are moved to the top of their word first.
CPU_INLINE __m256i open_line_scales_iq4_xs(const char *block) {
    int64_t head; // the factor, the upper bits of the scales, their lower bits
    memcpy(&head, block, sizeof(head));
    const __m256i all = _mm256_set1_epi64x(head);
    const __m256i bytes = _mm256_set1_epi64x((int64_t)0x8007800680058004);
    const __m256i nibbles = _mm256_srlv_epi32(_mm256_shuffle_epi8(all, bytes),
                                              _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    const __m256i to_top = _mm256_setr_epi64x(0x0004004004004000, 0, 0x0001001001001000, 0);
    const __m256i upper = _mm256_srli_epi16(
        _mm256_mullo_epi16(_mm256_shuffle_epi8(all, _mm256_set1_epi16(0x0302)), to_top), 10);
    const __m256i scales = _mm256_or_si256(_mm256_and_si256(nibbles, _mm256_set1_epi16(15)),
                                           _mm256_and_si256(upper, _mm256_set1_epi16(48)));
    return _mm256_sub_epi16(scales, _mm256_set1_epi16(32));
}

// Adds a block of four rows times each column, two groups at a time, half a vector each: low
// nibbles are the first half of a group.
CPU_INLINE void add_lines_iq4_xs(struct lane_sums *sums, const char *const *blocks,
                                 const struct rounded *x, const int columns) {
    __m256i scales[LINES];
    __m256 dots[ROUNDED_COLUMNS][LINES];
    CPU_UNROLLED
    for (int r = 0; r < LINES; ++r)
        scales[r] = open_line_scales_iq4_xs(blocks[r]);
    CPU_UNROLLED
    for (int g = 0; g < LINE_GROUPS; g += 2) {
        const __m256i word = _mm256_set1_epi16((int16_t)((g + 1) << 8 | g));
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r) {
            const vb qs = vb_load(((const block_iq4_xs *)(const void *)blocks[r])->qs + 16 * g);
            const vb low = vb_lookup(cpu_iq4_values, qs & 15);
            const vb high = vb_lookup(cpu_iq4_values, vb_bits(qs, 4, 0, 15));
            const __m256i scale = _mm256_shuffle_epi8(scales[r], word);
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const int8_t *numbers = x[c].numbers + ROUNDED_GROUP * g;
                const __m256i first = (__m256i)vb_load(numbers);
                const __m256i second = (__m256i)vb_load(numbers + ROUNDED_GROUP);
                const __m256i sum =
                    _mm256_add_epi32(_mm256_madd_epi16(signed_pairs(low, first), scale),
                                     _mm256_madd_epi16(signed_pairs(high, second), scale));
                const __m256 of_column = _mm256_loadu_ps(x[c].spread[SPREAD_SCALES + g / 2]);
                if (g == 0) dots[c][r] = _mm256_setzero_ps();
                dots[c][r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), of_column, dots[c][r]);
            }
        }
    }
    const __m256 factors = line_quads(line_factors(blocks, offsetof(block_iq4_xs, d)));
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r)
            sums[c].products[r] =
                _mm256_fmadd_ps(dots[c][r], line_spread(factors, r), sums[c].products[r]);
    }
}

// Tiles of four rows that are computed together.
CPU_INLINE int sets_at_once(const struct block_format f, const int columns) {
    (void)f, (void)columns;
    return 1;
}

// Blocks of a row that are computed per turn of the loop over them.
CPU_INLINE int blocks_at_once(const struct block_format f) {
    return f.size == ROUNDED_GROUP ? 2 : 1;
}

// Adds n blocks of each row, at most blocks_at_once(). Chooses the way by the type, which is known
// when compiling. `blocks` are four of each set.
CPU_INLINE void add_lanes(const struct block_format f, const int sets,
                          struct lane_sums (*sums)[ROUNDED_COLUMNS], const char *const *blocks,
                          const struct rounded *x, const int at, const int n, const int columns) {
    (void)sets;
    if (f.type == GGML_TYPE_Q8_0)
        add_lines_q8_0(sums[0], blocks, x, at, n, columns);
    else if (f.size == ROUNDED_GROUP)
        add_short_lines(f, sums[0], blocks, x, at, n, columns);
    else if (f.type == GGML_TYPE_IQ4_XS)
        add_lines_iq4_xs(sums[0], blocks, x, columns);
    else
        add_lines_256(f, sums[0], blocks, x, columns);
}

// Adds up lanes and offsets: the four results of a column.
CPU_INLINE void close_lanes(const struct block_format f, const struct lane_sums *sums, float *y) {
    if (is_signed_line(f.type)) {
        quad_store(y, vf_sum_each((const vf *)sums->products));
        return;
    }
    quad result = vf_sum_quads((vf)sums->products[0]);
    if (f.size == ROUNDED_GROUP && line_sign(f) != 0)
        result += vf_sum_quads((vf)sums->short_offsets) * line_sign(f);
    quad_store(y, result);
}

#endif
#endif
