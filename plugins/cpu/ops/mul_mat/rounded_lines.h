// SPDX-License-Identifier: MIT
// Blocks of four rows, multiplied out of registers: a vector holds 32 numbers of one row, as bytes
// without sign where a type has less than eight bits. What is added to make them so, like an
// offset, is due to a column's sums. For levels with AVX2 and no
// AVX-512, where rounded_rows.h is better.
#ifndef CPU_ROUNDED_LINES_H
#define CPU_ROUNDED_LINES_H

#include "ops/mul_mat/rounded.h"
#include "types/blocks.h"

#if defined(__AVX2__) && !defined(__AVX512BW__)

enum { LINES = 4, LINE_GROUPS = QK_K / ROUNDED_GROUP };

// Of one column, by row. Lanes of `offsets` are groups; short blocks have them in `short_offsets`,
// whose lanes are rows.
struct lane_sums {
    __m256 products[LINES];
    __m256 offsets[LINES];
    quad short_offsets;
};

// The factor of what scales, or offsets, add up to with the sums of a column; 0 where nothing is.
CPU_INLINE float line_sign(const struct block_format f) {
    return f.offset_at >= 0 ? 1.0f : (float)-rounded_bias(f.type);
}

// Types of eight bits: numbers have a sign.
CPU_INLINE bool is_signed_line(const enum ggml_type type) {
    return type == GGML_TYPE_Q8_0 || type == GGML_TYPE_IQ4_NL || type == GGML_TYPE_IQ4_XS;
}

// Four products to a lane. Signs move from w to x, where it has some: two products fit 16 bits.
CPU_INLINE __m256 dot_line(const enum ggml_type type, vb w, const int8_t *x) {
    const __m256i a = (__m256i)w, b = _mm256_loadu_si256((const __m256i *)(const void *)x);
    const __m256i pairs = is_signed_line(type)
                              ? _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a))
                              : _mm256_maddubs_epi16(a, b);
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

// --- blocks of 32 with one scale -----------------------------------------------------------------

// The numbers of a block of 32, as unsigned bytes: signed types are biased by rounded_bias().
CPU_INLINE vb line_numbers_32(const enum ggml_type type, const char *block) {
    const void *b = block;
    switch (type) {
    case GGML_TYPE_Q4_0: return vb_nibbles(((const block_q4_0 *)b)->qs, 0);
    case GGML_TYPE_Q4_1: return vb_nibbles(((const block_q4_1 *)b)->qs, 0);
    case GGML_TYPE_Q5_0: {
        const block_q5_0 *q5 = b;
        return vb_nibbles(q5->qs, 0) | (vb_mask(q5->qh) & 16);
    }
    case GGML_TYPE_Q5_1: {
        const block_q5_1 *q5 = b;
        return vb_nibbles(q5->qs, 0) | (vb_mask(q5->qh) & 16);
    }
    case GGML_TYPE_IQ4_NL:
        return vb_lookup(cpu_iq4_values, vb_nibbles(((const block_iq4_nl *)b)->qs, 0));
    case GGML_TYPE_MXFP4:
        return vb_lookup(cpu_fp4_values, vb_nibbles(((const block_mxfp4 *)b)->qs, 0)) +
               (uint8_t)rounded_bias(GGML_TYPE_MXFP4);
    default: return vb_load(((const block_q8_0 *)b)->qs);
    }
}

// The factors of each row's block.
CPU_INLINE quad line_factors(const struct block_format f, const char *const *blocks, const int at) {
    float factors[LINES];
    uint64_t halves = 0;
    for (int r = 0; r < LINES; ++r) {
        if (f.type == GGML_TYPE_MXFP4)
            factors[r] = GGML_E8M0_TO_FP32_HALF(((const block_mxfp4 *)(const void *)blocks[r])->e);
        else
            halves |= half_of_four(blocks[r] + at, r);
    }
    if (f.type != GGML_TYPE_MXFP4) four_floats(factors, halves);
    return quad_load(factors);
}

// Adds a block of 32 elements of four rows times each column.
CPU_INLINE void add_lines_32(const struct block_format f, struct lane_sums *sums,
                             const char *const *blocks, const struct rounded *x, const int at,
                             const int columns) {
    const quad scales = line_factors(f, blocks, f.scale_at);
    const quad offsets = f.offset_at >= 0 ? line_factors(f, blocks, f.offset_at) : scales;
    vb w[LINES];
    CPU_UNROLLED
    for (int r = 0; r < LINES; ++r)
        w[r] = line_numbers_32(f.type, blocks[r]);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        float factors[LINES];
        quad_store(factors, scales * x[c].scales[at / ROUNDED_GROUP]);
        CPU_IN_MEMORY(factors);
        if (line_sign(f) != 0) sums[c].short_offsets += offsets * x[c].sums32[at / ROUNDED_GROUP];
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r)
            sums[c].products[r] += dot_line(f.type, w[r], x[c].numbers + at) * factors[r];
    }
}

// --- blocks of 256 with scales of groups ---------------------------------------------------------

// Numbers of group g of 32.
CPU_INLINE vb line_numbers_256(const enum ggml_type type, const char *block, const int g) {
    const void *b = block;
    switch (type) {
    case GGML_TYPE_Q2_K:
        return vb_bits(vb_load(((const block_q2_K *)b)->qs + 32 * (g / 4)), 2 * (g % 4), 0, 3);
    case GGML_TYPE_Q3_K: {
        const block_q3_K *q3 = b;
        return vb_bits(vb_load(q3->qs + 32 * (g / 4)), 2 * (g % 4), 0, 3) |
               vb_bits(vb_load(q3->hmask), g, 2, 4);
    }
    case GGML_TYPE_Q4_K:
        return vb_bits(vb_load(((const block_q4_K *)b)->qs + 32 * (g / 2)), 4 * (g % 2), 0, 15);
    case GGML_TYPE_Q5_K: {
        const block_q5_K *q5 = b;
        return vb_bits(vb_load(q5->qs + 32 * (g / 2)), 4 * (g % 2), 0, 15) |
               vb_bits(vb_load(q5->qh), g, 4, 16);
    }
    case GGML_TYPE_Q6_K: {
        const block_q6_K *q6 = b;
        const int half = g / 4, i = g % 4;
        return vb_bits(vb_load(q6->ql + 64 * half + 32 * (i % 2)), 4 * (i / 2), 0, 15) |
               vb_bits(vb_load(q6->qh + 32 * half), 2 * i, 4, 48);
    }
    case GGML_TYPE_TQ2_0:
        return vb_bits(vb_load(((const block_tq2_0 *)b)->qs + 32 * (g / 4)), 2 * (g % 4), 0, 3);
    default:
        return vb_lookup(cpu_iq4_values, vb_nibbles(((const block_iq4_xs *)b)->qs + 16 * g, 0));
    }
}

// Scales of a block's groups; offsets follow where the type has them.
CPU_INLINE void open_line_scales(const enum ggml_type type, const char *block, struct opened *o) {
    const void *b = block;
    switch (type) {
    case GGML_TYPE_Q4_K: open_k4_scales(((const block_q4_K *)b)->scales, o); break;
    case GGML_TYPE_Q5_K: open_k4_scales(((const block_q5_K *)b)->scales, o); break;
    case GGML_TYPE_TQ2_0: fill_scales(o, LINE_GROUPS); break;
    default: open_iq4_xs_scales(b, o); break;
    }
}

// Adds a block of 256 elements of four rows times each column, whose groups of 32 have scales as
// floats. Groups of the rows take turns: those of one row wait for each other's sum.
CPU_INLINE void add_lines_of_32(const struct block_format f, struct lane_sums *sums,
                                const char *const *blocks, const struct rounded *x, const int at,
                                const int columns) {
    struct opened o[LINES];
    float scales[LINES][ROUNDED_COLUMNS][LINE_GROUPS];
    open_factors(f, blocks, LINES, o);
    CPU_UNROLLED
    for (int r = 0; r < LINES; ++r) {
        open_line_scales(f.type, blocks[r], &o[r]);
        const float *offset = f.offset_at >= 0 ? offsets(f, &o[r]) : o[r].scales;
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m256 of_column = _mm256_loadu_ps(x[c].scales + at / ROUNDED_GROUP);
            _mm256_storeu_ps(scales[r][c], _mm256_loadu_ps(o[r].scales) * of_column);
            CPU_IN_MEMORY(scales[r][c]);
            if (line_sign(f) != 0)
                sums[c].offsets[r] +=
                    _mm256_loadu_ps(offset) * _mm256_loadu_ps(x[c].sums32 + at / ROUNDED_GROUP);
        }
    }
    CPU_UNROLLED
    for (int g = 0; g < LINE_GROUPS; ++g) {
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r) {
            const vb w = line_numbers_256(f.type, blocks[r], g);
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c)
                sums[c].products[r] += dot_line(f.type, w, x[c].numbers + at + 32 * g) *
                                       _mm256_set1_ps(scales[r][c][g]);
        }
    }
}

// The 16 scales of a block, whole numbers that one factor belongs to.
CPU_INLINE __m128i whole_scales(const enum ggml_type type, const char *block) {
    const void *b = block;
    int8_t scales[MAX_GROUPS];
    switch (type) {
    case GGML_TYPE_Q2_K: return (__m128i)(v16b_load(((const block_q2_K *)b)->scales) & 15);
    case GGML_TYPE_Q3_K:
        open_q3_K_scales(((const block_q3_K *)b)->scales, scales);
        return (__m128i)v16b_load(scales);
    default: return (__m128i)v16b_load(((const block_q6_K *)b)->scales);
    }
}

// Sum over groups of 16 of whole numbers times the sums of a column, by lane. What is rounded is
// said by intrinsics here and below: compilers fuse where both operations end up in one
// basic block, and a row's result must not depend on its place in a tile.
CPU_INLINE __m256 dot_sums(__m128i numbers, const float *sums) {
    const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(numbers));
    const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(numbers, 8)));
    const __m256 part = _mm256_mul_ps(high, _mm256_loadu_ps(sums + 8));
    return _mm256_fmadd_ps(low, _mm256_loadu_ps(sums), part);
}

// Products of 16 bits with the scales of groups 2 g and 2 g + 1, of which `scales` has the even
// ones in its lower half.
CPU_INLINE __m256 scale_halves(__m256i pairs, __m256i scales, const int g) {
    const __m256i of_group = _mm256_set1_epi16((int16_t)((2 * g + 1) << 8 | 2 * g));
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_shuffle_epi8(scales, of_group)));
}

// Opens the scales of four blocks for the function below, and adds what offsets contribute.
CPU_INLINE void open_lines_of_16(const struct block_format f, struct lane_sums *sums,
                                 const char *const *blocks, const struct rounded *x, const int at,
                                 const int columns, const float *factors, __m256i *scales) {
    const __m128i even_first = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    float minima[LINES] = {0};
    if (f.offset_at >= 0) quad_store(minima, -line_factors(f, blocks, f.offset_at));
    CPU_UNROLLED
    for (int r = 0; r < LINES; ++r) {
        const __m128i all = whole_scales(f.type, blocks[r]);
        scales[r] = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(all, even_first));
        const void *b = blocks[r];
        const __m128i of_sums =
            f.offset_at >= 0 ? (__m128i)(v16b_load(((const block_q2_K *)b)->scales) >> 4) : all;
        const float factor = f.offset_at >= 0 ? minima[r] : factors[r];
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c)
            sums[c].offsets[r] = _mm256_fmadd_ps(dot_sums(of_sums, x[c].sums + at / 16),
                                                 _mm256_set1_ps(factor), sums[c].offsets[r]);
    }
}

// The same for types with groups of 16, whose scales are multiplied with as whole numbers: the
// row's factor comes last.
CPU_INLINE void add_lines_of_16(const struct block_format f, struct lane_sums *sums,
                                const char *const *blocks, const struct rounded *x, const int at,
                                const int columns) {
    __m256i scales[LINES];
    __m256 parts[ROUNDED_COLUMNS][LINES];
    float factors[LINES];
    quad_store(factors, line_factors(f, blocks, f.scale_at));
    open_lines_of_16(f, sums, blocks, x, at, columns, factors, scales);
    CPU_UNROLLED
    for (int g = 0; g < LINE_GROUPS; ++g) {
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r) {
            const __m256i w = (__m256i)line_numbers_256(f.type, blocks[r], g);
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const void *numbers = x[c].numbers + at + 32 * g;
                const __m256i pairs =
                    _mm256_maddubs_epi16(w, _mm256_loadu_si256((const __m256i *)numbers));
                const __m256 scale = _mm256_set1_ps(x[c].scales[at / ROUNDED_GROUP + g]);
                if (g == 0) parts[c][r] = _mm256_setzero_ps();
                parts[c][r] =
                    _mm256_fmadd_ps(scale_halves(pairs, scales[r], g), scale, parts[c][r]);
            }
        }
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int r = 0; r < LINES; ++r)
            sums[c].products[r] =
                _mm256_fmadd_ps(parts[c][r], _mm256_set1_ps(factors[r]), sums[c].products[r]);
    }
}

// Tiles of four rows that are computed together.
CPU_INLINE int sets_at_once(const struct block_format f, const int columns) {
    (void)f, (void)columns;
    return 1;
}

// Chooses the way by the type, which is known when compiling. `blocks` are four of each set.
CPU_INLINE void add_lanes(const struct block_format f, const int sets,
                          struct lane_sums (*sums)[ROUNDED_COLUMNS], const char *const *blocks,
                          const struct rounded *x, const int at, const int columns) {
    (void)sets;
    if (f.size == ROUNDED_GROUP)
        add_lines_32(f, sums[0], blocks, x, at, columns);
    else if (f.group == ROUNDED_GROUP)
        add_lines_of_32(f, sums[0], blocks, x, at, columns);
    else
        add_lines_of_16(f, sums[0], blocks, x, at, columns);
}

// Adds up lanes and offsets: the four results of a column.
CPU_INLINE void close_lanes(const struct block_format f, const struct lane_sums *sums, float *y) {
    quad result = vf_sum_each((const vf *)sums->products);
    if (line_sign(f) != 0) {
        const quad more =
            f.size == ROUNDED_GROUP ? sums->short_offsets : vf_sum_each((const vf *)sums->offsets);
        result += more * line_sign(f);
    }
    quad_store(y, result);
}

#endif
#endif
