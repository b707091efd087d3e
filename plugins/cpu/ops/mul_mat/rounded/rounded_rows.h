// SPDX-License-Identifier: MIT
// Blocks of four rows side by side: a quarter of a vector each, whose numbers, made bytes without
// sign, are multiplied with 16 of a column at a time; rounded_planes.h has those that take a vector
// per row. Needs AVX-512.
#ifndef CPU_ROUNDED_ROWS_H
#define CPU_ROUNDED_ROWS_H

#include "ops/mul_mat/rounded/rounded.h"
#include "types/blocks.h"

#if defined(__AVX512BW__)

enum { QUARTERS = 4 };

// Of one column: four lanes per row, and whole vectors by row, which have what is due to offsets of
// groups, or all where rows aren't in quarters.
struct lane_sums {
    __m512 products;
    __m512 rows[QUARTERS];
};

// 16 bytes of each of four blocks, one per quarter of the vector.
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
CPU_INLINE __m512i dot_vectors(__m512i sum, __m512i w, __m512i x) {
    return _mm512_dpbusd_epi32(sum, w, x);
}
#else
// Two products fit 16 bits where w is below 128.
CPU_INLINE __m512i dot_vectors(__m512i sum, __m512i w, __m512i x) {
    const __m512i pairs = _mm512_maddubs_epi16(w, x);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#endif

CPU_INLINE __m512i dot_quarters(__m512i sum, __m512i w, const int8_t *x) {
    return dot_vectors(sum, w, quarters_spread(x));
}

// Lanes 4 * i + row of v become those of row `row`.
CPU_INLINE __m512 quarters_of(__m512 v, const int i) {
    const __m512i rows = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(_mm512_add_epi32(rows, _mm512_set1_epi32(4 * i)), v);
}

// The halves at `at` of each row's block.
CPU_INLINE void quarter_floats(const char *const *blocks, const int at, float *floats) {
    uint64_t halves = 0;
    for (int r = 0; r < QUARTERS; ++r)
        halves |= half_of_four(blocks[r] + at, r);
    four_floats(floats, halves);
}

// The same, in the row's lanes.
CPU_INLINE __m512 quarters_halves(const char *const *blocks, const int at) {
    float floats[QUARTERS];
    quarter_floats(blocks, at, floats);
    return quarters_of(_mm512_castps128_ps512(_mm_loadu_ps(floats)), 0);
}

// --- blocks of 32 with one scale -----------------------------------------------------------------

// Entries of a table of 16 for the lower halves of bytes, larger by a bias.
CPU_INLINE __m512i quarters_lookup(const int8_t *values, const int bias, __m512i index) {
    const __m128i table = _mm_loadu_si128((const __m128i *)(const void *)values);
    return _mm512_shuffle_epi8(
        _mm512_broadcast_i32x4(_mm_add_epi8(table, _mm_set1_epi8((char)bias))), index);
}

// What products of 32 biased numbers begin with: -bias times the column's that a lane adds up.
CPU_INLINE void quarters_start(const enum ggml_type type, const int8_t *numbers, int32_t *out) {
    const __m128i one = _mm_set1_epi8(1);
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)numbers);
    const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(numbers + 16));
    const __m128i pairs = _mm_add_epi16(_mm_maddubs_epi16(one, low), _mm_maddubs_epi16(one, high));
    const __m128i factor = _mm_set1_epi16((int16_t)-quarter_bias(type));
    _mm_storeu_si128((__m128i *)(void *)out, _mm_madd_epi16(pairs, factor));
}

// The factor of the products of scales or offsets with the sums of a column.
CPU_INLINE float quarter_sign(const struct block_format f) {
    return f.offset_at >= 0 ? 1.0f : (float)-quarter_bias(f.type);
}

// Where the halves of bytes lie in a block of 32, and the 32 fifth bits or -1.
CPU_INLINE int quarter_qs_at(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_Q4_0: return offsetof(block_q4_0, qs);
    case GGML_TYPE_Q4_1: return offsetof(block_q4_1, qs);
    case GGML_TYPE_Q5_0: return offsetof(block_q5_0, qs);
    case GGML_TYPE_Q5_1: return offsetof(block_q5_1, qs);
    case GGML_TYPE_IQ4_NL: return offsetof(block_iq4_nl, qs);
    case GGML_TYPE_MXFP4: return offsetof(block_mxfp4, qs);
    default: return offsetof(block_q8_0, qs);
    }
}

// Where a block has its fifth bits, or -1.
CPU_INLINE int quarter_qh_at(const enum ggml_type type) {
    if (type == GGML_TYPE_Q5_0) return offsetof(block_q5_0, qh);
    return type == GGML_TYPE_Q5_1 ? (int)offsetof(block_q5_1, qh) : -1;
}

// 16 where bit 16 * half + i of 32 of a row's is set, for byte i of its quarter.
CPU_INLINE __m512i quarters_fifth(const char *const *blocks, const int at, const int half) {
    __mmask64 mask = 0;
    CPU_UNROLLED
    for (int r = 0; r < QUARTERS; ++r) {
        uint16_t bits;
        memcpy(&bits, blocks[r] + at + 2 * half, sizeof(bits));
        mask |= (__mmask64)bits << 16 * r;
    }
    return _mm512_maskz_set1_epi8(mask, 16);
}

// Numbers of four blocks of 32 elements as bytes without sign, biased: first 16 elements in
// `low`, the others in `high`.
CPU_INLINE void quarters_numbers_32(const enum ggml_type type, const char *const *blocks,
                                    __m512i *low, __m512i *high) {
    const __m512i nibble = _mm512_set1_epi8(15);
    const int qs_at = quarter_qs_at(type), qh_at = quarter_qh_at(type);
    const __m512i qs = quarters_load(blocks, qs_at);
    if (type == GGML_TYPE_Q8_0) {
        const __m512i sign = _mm512_set1_epi8(-128);
        *low = qs ^ sign;
        *high = quarters_load(blocks, qs_at + 16) ^ sign;
        return;
    }
    *low = qs & nibble;
    *high = move_bits(qs, 4, 0) & nibble;
    if (type == GGML_TYPE_IQ4_NL) {
        *low = quarters_lookup(cpu_iq4_values, quarter_bias(type), *low);
        *high = quarters_lookup(cpu_iq4_values, quarter_bias(type), *high);
    }
    if (type == GGML_TYPE_MXFP4) {
        *low = quarters_lookup(cpu_fp4_values, quarter_bias(type), *low);
        *high = quarters_lookup(cpu_fp4_values, quarter_bias(type), *high);
    }
    if (qh_at >= 0) {
        *low |= quarters_fifth(blocks, qh_at, 0);
        *high |= quarters_fifth(blocks, qh_at, 1);
    }
}

// As GGML_E8M0_TO_FP32_HALF() of each row's exponent: the two smallest are subnormal.
CPU_INLINE __m512 quarters_scales_mxfp4(const char *const *blocks) {
    uint8_t e[QUARTERS];
    for (int r = 0; r < QUARTERS; ++r)
        e[r] = (uint8_t)blocks[r][offsetof(block_mxfp4, e)];
    const __m128i codes = _mm_setr_epi32(e[0], e[1], e[2], e[3]);
    const __m128i small = _mm_sllv_epi32(_mm_set1_epi32(0x200000), codes);
    const __m128i normal = _mm_slli_epi32(_mm_sub_epi32(codes, _mm_set1_epi32(1)), 23);
    const __mmask8 is_normal = _mm_cmpgt_epi32_mask(codes, _mm_set1_epi32(1));
    const __m128 scales = _mm_castsi128_ps(_mm_mask_mov_epi32(small, is_normal, normal));
    return quarters_of(_mm512_castps128_ps512(scales), 0);
}

// A block of 32 elements of four rows; offsets are a quarter of the type's.
struct quarters_32 {
    __m512i low, high;
    __m512 scales, offsets;
};

CPU_INLINE void open_quarters_32(const struct block_format f, const char *const *blocks,
                                 struct quarters_32 *out) {
    quarters_numbers_32(f.type, blocks, &out->low, &out->high);
    out->scales = f.type == GGML_TYPE_MXFP4 ? quarters_scales_mxfp4(blocks)
                                            : quarters_halves(blocks, f.scale_at);
    if (f.offset_at >= 0)
        out->offsets =
            _mm512_mul_ps(quarters_halves(blocks, f.offset_at), _mm512_set1_ps(1.0f / 4));
}

// Adds a block of 32 elements of each of `sets` times four rows to sums[set][column]. A column is
// loaded once for all sets.
CPU_INLINE void add_quarters_32(const struct block_format f, const struct quarters_32 *w,
                                const int sets, struct lane_sums (*sums)[ROUNDED_COLUMNS],
                                const struct rounded *x, const int at, const int columns) {
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const __m512i low = quarters_spread(x[c].numbers + at);
        const __m512i high = quarters_spread(x[c].numbers + at + 16);
        const __m512 scale = _mm512_set1_ps(x[c].scales[at / 32]);
        __m512i start = _mm512_setzero_si512();
        if (f.offset_at < 0)
            start = _mm512_broadcast_i32x4(
                _mm_loadu_si128((const __m128i *)(const void *)x[c].starts[at / 32]));
        CPU_UNROLLED
        for (int s = 0; s < sets; ++s) {
            __m512 *sum = &sums[s][c].products;
            const __m512i dots = dot_vectors(dot_vectors(start, w[s].low, low), w[s].high, high);
            if (f.offset_at >= 0)
                *sum = _mm512_fmadd_ps(w[s].offsets, _mm512_set1_ps(x[c].sums32[at / 32]), *sum);
            *sum =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_mul_ps(w[s].scales, scale), *sum);
        }
    }
}

// --- NVFP4 ---------------------------------------------------------------------------------------

// Half the values of unsigned E4M3 codes of groups 2 * half and the next, in two lanes of a row
// each. Their bits are those of a float whose exponent has another bias; 127 stands for 0.
CPU_INLINE __m512 quarters_scales_nvfp4(__m128i codes, const int half) {
    const int i = 2 * half;
    const __m128i at = _mm_setr_epi8(i, i, i + 1, i + 1, i + 4, i + 4, i + 5, i + 5, i + 8, i + 8,
                                     i + 9, i + 9, i + 12, i + 12, i + 13, i + 13);
    const __m512i lanes =
        _mm512_and_si512(_mm512_cvtepu8_epi32(_mm_shuffle_epi8(codes, at)), _mm512_set1_epi32(127));
    const __mmask16 any = _mm512_cmpneq_epi32_mask(lanes, _mm512_set1_epi32(127));
    const __m512i bits = _mm512_maskz_slli_epi32(any, lanes, 20);
    return _mm512_castsi512_ps(bits) * _mm512_set1_ps(0x1p119f);
}

// Eight bytes have a group, the low halves first: what lies in a row's 16 is of two groups.
CPU_INLINE void add_quarters_nvfp4(struct lane_sums *sums, const char *const *blocks,
                                   const struct rounded *x, const int first, const int columns) {
    const __m512i nibble = _mm512_set1_epi8(15);
    int32_t d[QUARTERS];
    for (int r = 0; r < QUARTERS; ++r)
        memcpy(&d[r], blocks[r] + offsetof(block_nvfp4, d), sizeof(d[r]));
    const __m128i codes = _mm_setr_epi32(d[0], d[1], d[2], d[3]);
    CPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
        const int bias = quarter_bias(GGML_TYPE_NVFP4);
        const __m512 scales = quarters_scales_nvfp4(codes, half);
        const __m512i qs = quarters_load(blocks, offsetof(block_nvfp4, qs) + 16 * half);
        const __m512i low = quarters_lookup(cpu_fp4_values, bias, qs & nibble);
        const __m512i high = quarters_lookup(cpu_fp4_values, bias, move_bits(qs, 4, 0) & nibble);
        const int at = first + 32 * half;
        const __m512 biases =
            _mm512_mul_ps(scales, _mm512_set1_ps((float)-bias / 2)); // of two lanes
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m512i numbers = _mm512_broadcast_i64x4(
                _mm256_loadu_si256((const __m256i *)(const void *)(x[c].numbers + at)));
            const __m512i dots = dot_vectors(
                dot_vectors(_mm512_setzero_si512(), low, _mm512_permutex_epi64(numbers, 0x88)),
                high, _mm512_permutex_epi64(numbers, 0xDD));
            double both; // sums of two groups
            memcpy(&both, x[c].sums + at / 16, sizeof(both));
            const __m512 sum = _mm512_castpd_ps(_mm512_set1_pd(both));
            const __m512 scale = _mm512_set1_ps(x[c].scales[at / 32]);
            const __m512 all =
                _mm512_fmadd_ps(_mm512_permute_ps(sum, 0x50), biases, sums[c].products);
            sums[c].products =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_mul_ps(scales, scale), all);
        }
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
    if (type == GGML_TYPE_IQ4_XS) {
        const __m512i qs = quarters_load(blocks, offsetof(block_iq4_xs, qs) + 16 * (part / 2));
        return quarters_lookup(cpu_iq4_values, 128, (part % 2 ? move_bits(qs, 4, 0) : qs) & nibble);
    }
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

// The scales of a block of 256 elements as floats.
CPU_INLINE void open_scales_256(const enum ggml_type type, const void *b, struct opened *o) {
    switch (type) {
    case GGML_TYPE_Q4_K: open_k4_scales(((const block_q4_K *)b)->scales, o); break;
    case GGML_TYPE_Q5_K: open_k4_scales(((const block_q5_K *)b)->scales, o); break;
    case GGML_TYPE_IQ4_XS: open_iq4_xs_scales(b, o); break;
    default: scale_groups(o->scales, ((const block_q6_K *)b)->scales, MAX_GROUPS); break;
    }
}

// By row: scales, which Q4_K and Q5_K have 8 of, then as many offsets.
CPU_INLINE void open_quarter_scales(const struct block_format f, const char *const *blocks,
                                    __m512 *rows) {
    struct opened o[QUARTERS];
    open_factors(f, blocks, QUARTERS, o);
    for (int r = 0; r < QUARTERS; ++r) {
        open_scales_256(f.type, blocks[r], &o[r]);
        rows[r] = _mm512_loadu_ps(o[r].scales);
    }
}

// Sums of a column in the lanes of what they are multiplied with; 0 in the others.
CPU_INLINE __m512 quarter_column_sums(const struct block_format f, const struct rounded *x) {
    if (f.group == 16) return _mm512_loadu_ps(x->sums);
    const __m256 sums = _mm256_loadu_ps(x->sums32);
    return f.offset_at >= 0 ? _mm512_insertf32x8(_mm512_setzero_ps(), sums, 1)
                            : _mm512_zextps256_ps512(sums);
}

// Adds group g of a block of 256 elements; its scales lie in one vector of the table.
CPU_INLINE void add_quarters_group(const struct block_format f, struct lane_sums *sums,
                                   const char *const *blocks, const __m512 *table, const int g,
                                   const struct rounded *x, const int columns) {
    const int parts = f.group / 16;
    const __m512 scales = quarters_of(table[g % 4], g / 4);
    __m512i w[2];
    CPU_UNROLLED
    for (int i = 0; i < parts; ++i)
        w[i] = quarters_part(f.type, blocks, g * parts + i);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const int8_t *numbers = x[c].numbers + g * f.group;
        __m512i dots = _mm512_setzero_si512();
        CPU_UNROLLED
        for (int i = 0; i < parts; ++i)
            dots = dot_quarters(dots, w[i], numbers + 16 * i);
        const __m512 scale = _mm512_set1_ps(x[c].scales[g * f.group / 32]);
        sums[c].products = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_mul_ps(scales, scale),
                                           sums[c].products);
    }
}

// Adds a block of 256 elements of four rows: offsets first, times sums of the column's groups,
// then group by group.
CPU_INLINE void add_quarters_256(const struct block_format f, struct lane_sums *sums,
                                 const char *const *blocks, const struct rounded *x,
                                 const int columns) {
    __m512 rows[QUARTERS], table[4];
    open_quarter_scales(f, blocks, rows);
    transpose_scales(rows, table);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const __m512 of_column = quarter_column_sums(f, &x[c]);
        CPU_UNROLLED
        for (int r = 0; r < QUARTERS; ++r)
            sums[c].rows[r] = _mm512_fmadd_ps(rows[r], of_column, sums[c].rows[r]);
    }
    CPU_UNROLLED
    for (int i = 0; i < QK_K / f.group / 4; ++i) {
        CPU_UNROLLED
        for (int j = 0; j < 4; ++j)
            add_quarters_group(f, sums, blocks, table, 4 * i + j, x, columns);
    }
}

// One scale for all groups.
CPU_INLINE void add_quarters_tq2_0(struct lane_sums *sums, const char *const *blocks,
                                   const struct rounded *x, const int columns) {
    const __m512 scales = quarters_halves(blocks, offsetof(block_tq2_0, d));
    __m512 dots[ROUNDED_COLUMNS];
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const __m512 sum = _mm512_broadcast_f32x4(_mm_loadu_ps(x[c].sums32)) +
                           _mm512_broadcast_f32x4(_mm_loadu_ps(x[c].sums32 + 4));
        sums[c].products = _mm512_fnmadd_ps(sum, scales, sums[c].products);
        dots[c] = _mm512_setzero_ps();
    }
    CPU_UNROLLED
    for (int i = 0; i < 4; ++i) {
        __m512i qs[2];
        for (int j = 0; j < 2; ++j)
            qs[j] = quarters_load(blocks, offsetof(block_tq2_0, qs) + 32 * (i / 2) + 16 * j);
        CPU_UNROLLED
        for (int g = 2 * i; g < 2 * i + 2; ++g) {
            const __m512i two = _mm512_set1_epi8(3);
            const __m512i low = move_bits(qs[0], 2 * (g % 4), 0) & two;
            const __m512i high = move_bits(qs[1], 2 * (g % 4), 0) & two;
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const int8_t *numbers = x[c].numbers + 32 * g;
                const __m512i products = dot_quarters(
                    dot_quarters(_mm512_setzero_si512(), low, numbers), high, numbers + 16);
                dots[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products),
                                          _mm512_set1_ps(x[c].scales[g]), dots[c]);
            }
        }
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        sums[c].products = _mm512_fmadd_ps(dots[c], scales, sums[c].products);
}

#include "ops/mul_mat/rounded/rounded_planes.h"

// Tiles of four rows that are computed together.
CPU_INLINE int sets_at_once(const struct block_format f, const int columns) {
    return f.size == 32 && columns > 2 ? 2 : 1;
}

// Blocks of a row that are computed per turn of the loop over them.
CPU_INLINE int blocks_at_once(const struct block_format f) {
    (void)f;
    return 1;
}

// Adds a block of each row. Chooses the way by the type, which is known when compiling. `blocks`
// are four of each set.
CPU_INLINE void add_lanes(const struct block_format f, const int sets,
                          struct lane_sums (*sums)[ROUNDED_COLUMNS], const char *const *blocks,
                          const struct rounded *x, const int at, const int n, const int columns) {
    (void)n; // blocks_at_once()
    if (f.size == 32) {
        struct quarters_32 w[2];
        CPU_UNROLLED
        for (int s = 0; s < sets; ++s)
            open_quarters_32(f, blocks + s * QUARTERS, &w[s]);
        add_quarters_32(f, w, sets, sums, x, at, columns);
    } else if (f.type == GGML_TYPE_NVFP4)
        add_quarters_nvfp4(sums[0], blocks, x, at, columns);
    else if (f.type == GGML_TYPE_TQ2_0)
        add_quarters_tq2_0(sums[0], blocks, x, columns);
    else if (lies_in_planes(f.type))
        add_planes(f, sums[0], blocks, x, columns);
    else
        add_quarters_256(f, sums[0], blocks, x, columns);
}

// Adds up lanes and offsets: the four results of a column.
CPU_INLINE void close_lanes(const struct block_format f, const struct lane_sums *sums, float *y) {
    if (lies_in_planes(f.type)) {
        quad_store(y, vf_sum_each((const vf *)sums->rows));
        return;
    }
    quad lanes[QUARTERS];
    memcpy(lanes, &sums->products, sizeof(sums->products));
    quad result = quad_sum_each(lanes[0], lanes[1], lanes[2], lanes[3]);
    if (f.size == QK_K && f.type != GGML_TYPE_TQ2_0) {
        const quad offset = vf_sum_each((const vf *)sums->rows);
        result += offset * quarter_sign(f);
    }
    quad_store(y, result);
}

#endif
#endif
