// SPDX-License-Identifier: MIT
// Blocks of four rows side by side: a quarter of a vector each, whose numbers, made bytes without
// sign, are multiplied with 16 of a column at a time. Needs AVX-512.
#ifndef CPU_ROUNDED_ROWS_H
#define CPU_ROUNDED_ROWS_H

#include "ops/mul_mat/rounded.h"
#include "types/blocks.h"

#if defined(__AVX512BW__)

enum { QUARTERS = 4 };

// Of one column: four lanes per row, and by row what is due to offsets, by group.
struct quarter_sums {
    __m512 products;
    __m512 biases; // scale * sum of the column, for numbers with a bias
    __m512 offsets[QUARTERS];
};

CPU_INLINE __m512i quarters_load(const char *const *blocks, const int at) {
    const __m256i low = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(blocks[0] + at))),
        _mm_loadu_si128((const __m128i *)(const void *)(blocks[1] + at)), 1);
    const __m256i high = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(blocks[2] + at))),
        _mm_loadu_si128((const __m128i *)(const void *)(blocks[3] + at)), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// 16 numbers of a column for each row.
CPU_INLINE __m512i quarters_spread(const int8_t *x) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)x));
}

typedef uint16_t v32h __attribute__((vector_size(64)));

// Bits `from` and up of each byte moved to bits `to` and up; others come with them.
CPU_INLINE __m512i move_bits(__m512i v, const int from, const int to) {
    const v32h pairs = (v32h)v;
    return (__m512i)(from > to ? pairs >> (from - to) : pairs << (to - from));
}

#if defined(__AVX512VNNI__)
CPU_INLINE __m512i dot_quarters(__m512i sum, __m512i w, const int8_t *x) {
    return _mm512_dpbusd_epi32(sum, w, quarters_spread(x));
}
#else
// Two products fit 16 bits where w is below 128.
CPU_INLINE __m512i dot_quarters(__m512i sum, __m512i w, const int8_t *x) {
    const __m512i pairs = _mm512_maddubs_epi16(w, quarters_spread(x));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#endif

// Lanes 4 * i + row of v become those of row `row`.
CPU_INLINE __m512 quarters_of(__m512 v, const int i) {
    const __m512i rows = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(_mm512_add_epi32(rows, _mm512_set1_epi32(4 * i)), v);
}

// The halves at `at` of each row's block, in the row's lanes.
CPU_INLINE __m512 quarters_halves(const char *const *blocks, const int at) {
    float floats[QUARTERS];
    ggml_fp16_t halves[QUARTERS];
    for (int r = 0; r < QUARTERS; ++r)
        memcpy(&halves[r], blocks[r] + at, sizeof(halves[r]));
    four_floats(floats, halves);
    return quarters_of(_mm512_castps128_ps512(_mm_loadu_ps(floats)), 0);
}

// --- blocks of 32 with one scale -----------------------------------------------------------------

CPU_INLINE void add_quarters_32(const struct block_format f, struct quarter_sums *sums,
                                const char *const *blocks, const struct rounded *x, int64_t first,
                                const int columns) {
    const __m512 scales = quarters_halves(blocks, f.scale_at);
    __m512i low, high;
    if (f.type == GGML_TYPE_Q8_0) {
        const __m512i sign = _mm512_set1_epi8(-128);
        low = quarters_load(blocks, offsetof(block_q8_0, qs)) ^ sign;
        high = quarters_load(blocks, offsetof(block_q8_0, qs) + 16) ^ sign;
    } else {
        const __m512i nibble = _mm512_set1_epi8(15);
        const __m512i qs = quarters_load(blocks, offsetof(block_q4_0, qs));
        low = qs & nibble;
        high = move_bits(qs, 4, 0) & nibble;
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const int8_t *numbers = x[c].numbers + first;
        const __m512i dots =
            dot_quarters(dot_quarters(_mm512_setzero_si512(), low, numbers), high, numbers + 16);
        const __m512 scale = _mm512_set1_ps(x[c].scales[first / 32]);
        const __m512 sum = _mm512_set1_ps(x[c].sums32[first / 32]);
        sums[c].products += _mm512_cvtepi32_ps(dots) * scale * scales;
        sums[c].biases += scales * sum;
    }
}

// --- blocks of 256 with scales of groups ---------------------------------------------------------

// Scales of 16 groups (or of 8, then offsets) of each row, by group: table[g % 4] has in lanes
// 4 * (g / 4) + row those of group g.
CPU_INLINE void transpose_scales(const __m512 *rows, __m512 *table) {
    const __m512 a = _mm512_unpacklo_ps(rows[0], rows[1]), b = _mm512_unpackhi_ps(rows[0], rows[1]);
    const __m512 c = _mm512_unpacklo_ps(rows[2], rows[3]), d = _mm512_unpackhi_ps(rows[2], rows[3]);
    table[0] = _mm512_shuffle_ps(a, c, 0x44);
    table[1] = _mm512_shuffle_ps(a, c, 0xEE);
    table[2] = _mm512_shuffle_ps(b, d, 0x44);
    table[3] = _mm512_shuffle_ps(b, d, 0xEE);
}

// Numbers of 16 elements of each row, `part` of 16 parts of the block, without sign.
CPU_INLINE __m512i quarters_part(const enum ggml_type type, const char *const *blocks,
                                 const int part) {
    const __m512i nibble = _mm512_set1_epi8(15);
    if (type == GGML_TYPE_Q6_K) {
        const int half = part / 8, i = part % 8;
        const __m512i ql =
            quarters_load(blocks, offsetof(block_q6_K, ql) + 64 * half + 16 * (i % 4));
        const __m512i qh =
            quarters_load(blocks, offsetof(block_q6_K, qh) + 32 * half + 16 * (i % 2));
        const __m512i low = (i < 4 ? ql : move_bits(ql, 4, 0)) & nibble;
        const int shift = 2 * (i / 2); // of the two bits, which become bits 4 and 5
        return low | (move_bits(qh, shift, 4) & _mm512_set1_epi8(48));
    }
    const int pair = part / 4, high = part % 4 / 2, g = 2 * pair + high;
    const int qs_at =
        type == GGML_TYPE_Q5_K ? (int)offsetof(block_q5_K, qs) : (int)offsetof(block_q4_K, qs);
    const __m512i qs = quarters_load(blocks, qs_at + 32 * pair + 16 * (part % 2));
    const __m512i low = (high ? move_bits(qs, 4, 0) : qs) & nibble;
    if (type == GGML_TYPE_Q4_K) return low;
    const __m512i qh = quarters_load(blocks, offsetof(block_q5_K, qh) + 16 * (part % 2));
    return low | (move_bits(qh, g, 4) & _mm512_set1_epi8(16));
}

CPU_INLINE void open_quarter_scales(const struct block_format f, const char *const *blocks,
                                    __m512 *rows) {
    struct opened o[QUARTERS];
    open_factors(f, blocks, QUARTERS, o);
    for (int r = 0; r < QUARTERS; ++r) {
        if (f.type == GGML_TYPE_Q4_K)
            open_k4_scales(((const block_q4_K *)(const void *)blocks[r])->scales, &o[r]);
        else if (f.type == GGML_TYPE_Q5_K)
            open_k4_scales(((const block_q5_K *)(const void *)blocks[r])->scales, &o[r]);
        else
            scale_groups(o[r].scales, ((const block_q6_K *)(const void *)blocks[r])->scales,
                         MAX_GROUPS);
        rows[r] = _mm512_loadu_ps(o[r].scales);
    }
}

// What the scales and offsets of a row are multiplied with: for groups of 32 the sums of the
// column in the lanes of the offsets, for groups of 16 the sums in all lanes.
CPU_INLINE __m512 quarter_column_sums(const struct block_format f, const struct rounded *x,
                                      int64_t first) {
    if (f.group == 16) return _mm512_loadu_ps(x->sums + first / 16);
    const __m256 sums = _mm256_loadu_ps(x->sums32 + first / 32);
    return _mm512_insertf32x8(_mm512_setzero_ps(), sums, 1);
}

CPU_INLINE void add_quarters_group(const struct block_format f, struct quarter_sums *sums,
                                   const char *const *blocks, const __m512 *table, const int g,
                                   const struct rounded *x, int64_t first, const int columns) {
    const int parts = f.group / 16;
    const __m512 scales = quarters_of(table[g % 4], g / 4);
    __m512i w[2];
    CPU_UNROLLED
    for (int i = 0; i < parts; ++i)
        w[i] = quarters_part(f.type, blocks, g * parts + i);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const int8_t *numbers = x[c].numbers + first + g * f.group;
        __m512i dots = _mm512_setzero_si512();
        CPU_UNROLLED
        for (int i = 0; i < parts; ++i)
            dots = dot_quarters(dots, w[i], numbers + 16 * i);
        const __m512 scale = _mm512_set1_ps(x[c].scales[(first + g * f.group) / 32]);
        sums[c].products += _mm512_cvtepi32_ps(dots) * scale * scales;
    }
}

CPU_INLINE void add_quarters_256(const struct block_format f, struct quarter_sums *sums,
                                 const char *const *blocks, const struct rounded *x, int64_t first,
                                 const int columns) {
    __m512 rows[QUARTERS], table[4];
    open_quarter_scales(f, blocks, rows);
    transpose_scales(rows, table);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const __m512 of_column = quarter_column_sums(f, &x[c], first);
        CPU_UNROLLED
        for (int r = 0; r < QUARTERS; ++r)
            sums[c].offsets[r] += rows[r] * of_column;
    }
    CPU_UNROLLED
    for (int i = 0; i < QK_K / f.group / 4; ++i) {
        CPU_UNROLLED
        for (int g = 4 * i; g < 4 * i + 4; ++g)
            add_quarters_group(f, sums, blocks, table, g, x, first, columns);
    }
}

CPU_INLINE void add_quarters(const struct block_format f, struct quarter_sums *sums,
                             const char *const *blocks, const struct rounded *x, int64_t first,
                             const int columns) {
    if (f.size == 32)
        add_quarters_32(f, sums, blocks, x, first, columns);
    else
        add_quarters_256(f, sums, blocks, x, first, columns);
}

// What numbers without sign are larger by.
CPU_INLINE float quarter_bias(const enum ggml_type type) {
    return type == GGML_TYPE_Q8_0 ? 128.0f : type == GGML_TYPE_Q4_0 ? 8.0f : 32.0f;
}

CPU_INLINE void close_quarters(const struct block_format f, const struct quarter_sums *sums,
                               float *y) {
    __m512 v = sums->products;
    if (f.size == 32) v -= sums->biases * (quarter_bias(f.type) / 4); // in four lanes each
    quad lanes[QUARTERS];
    memcpy(lanes, &v, sizeof(v));
    quad result = quad_sum_each(lanes[0], lanes[1], lanes[2], lanes[3]);
    if (f.size > 32) {
        const quad offset = vf_sum_each((const vf *)sums->offsets);
        result += f.group == 16 ? offset * -quarter_bias(f.type) : offset;
    }
    quad_store(y, result);
}

#endif
#endif
