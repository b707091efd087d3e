// SPDX-License-Identifier: MIT
// Blocks of Q2_K of four rows, a whole vector per row: the part of rounded_rows.h, which includes
// this, for numbers of two bits that lie in 64 bytes. Shifted by 0, 2, 4 and 6 bits these are four
// planes of 64 numbers, so a row costs one load, and its scales stay whole numbers until the
// column's are multiplied: a quarter of the conversions that scales as floats need.
//
// Byte i of plane j is element 128 * (i / 32) + 32 * j + i % 32, lane l of its products belongs to
// group 8 * (l / 8) + 2 * j + l / 4 % 2.
#ifndef CPU_ROUNDED_PLANES_H
#define CPU_ROUNDED_PLANES_H

enum { PLANES = 4, PLANE_PAIRS = PLANES / 2 };

// A column's elements of a block as the rows' planes have them; shared by the rows.
struct plane_column {
    __m512i numbers[PLANES];
    __m512 scales[PLANE_PAIRS]; // of what pair_sums() makes of two planes
};

// What is multiplied with the columns of a row's block.
struct plane_row {
    __m512i numbers[PLANES];
    __m512i scales[PLANE_PAIRS]; // words
    __m512 mins;                 // by group
};

// Types whose blocks are multiplied so.
CPU_INLINE bool lies_in_planes(const enum ggml_type type) {
    return type == GGML_TYPE_Q2_K;
}

CPU_INLINE __m256i load_half(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

CPU_INLINE void open_plane_column(const struct rounded *x, struct plane_column *out) {
    const __m512i of_pair[PLANE_PAIRS] = {
        _mm512_setr_epi32(0, 0, 1, 1, 0, 0, 1, 1, 4, 4, 5, 5, 4, 4, 5, 5),
        _mm512_setr_epi32(2, 2, 3, 3, 2, 2, 3, 3, 6, 6, 7, 7, 6, 6, 7, 7)};
    const __m512 scales = _mm512_castps256_ps512(_mm256_loadu_ps(x->scales));
    CPU_UNROLLED
    for (int j = 0; j < PLANES; ++j) {
        const int8_t *from = x->numbers + 32 * j;
        out->numbers[j] = _mm512_inserti64x4(_mm512_castsi256_si512(load_half(from)),
                                             load_half(from + QK_K / 2), 1);
    }
    CPU_UNROLLED
    for (int p = 0; p < PLANE_PAIRS; ++p)
        out->scales[p] = _mm512_permutexvar_ps(of_pair[p], scales);
}

// Bytes of scales as words in the order in which pair_sums() packs sums of two planes.
CPU_INLINE void spread_scales(__m128i scales, __m512i *out) {
    const __m256i words = _mm256_cvtepu8_epi16(scales);
    // clang-format off
    static const int16_t of_pair[PLANE_PAIRS][32] = {
        {0, 0, 0, 0,  2,  2,  2,  2, 1, 1, 1, 1,  3,  3,  3,  3,
         8, 8, 8, 8, 10, 10, 10, 10, 9, 9, 9, 9, 11, 11, 11, 11},
        { 4,  4,  4,  4,  6,  6,  6,  6,  5,  5,  5,  5,  7,  7,  7,  7,
         12, 12, 12, 12, 14, 14, 14, 14, 13, 13, 13, 13, 15, 15, 15, 15}};
    // clang-format on
    CPU_UNROLLED
    for (int p = 0; p < PLANE_PAIRS; ++p)
        out[p] =
            _mm512_permutexvar_epi16(_mm512_loadu_si512(of_pair[p]), _mm512_castsi256_si512(words));
}

// Unpacks a block's numbers into planes of 64 bytes, as the 8-bit dot product instruction takes
// them, with a scale and a minimum per group of 16.
CPU_INLINE void open_plane_row(const block_q2_K *b, struct plane_row *out) {
    const __m512i qs = _mm512_loadu_si512(b->qs);
    const __m128i packed = _mm_loadu_si128((const __m128i *)(const void *)b->scales);
    const __m128i nibble = _mm_set1_epi8(15);
    CPU_UNROLLED
    for (int j = 0; j < PLANES; ++j)
        out->numbers[j] = move_bits(qs, 2 * j, 0) & _mm512_set1_epi8(3);
    // The low nibbles are scales, the high ones minima.
    spread_scales(packed & nibble, out->scales);
    const __m128i mins = _mm_srli_epi16(packed, 4) & nibble;
    out->mins = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(mins));
}

// Products of planes 2 * p and the next, times the row's scales. Sums of four fit 16 bits: two
// planes are packed into one vector, and an instruction scales them and adds them in pairs.
CPU_INLINE __m512 pair_sums(const struct plane_row *w, const struct plane_column *x, const int p) {
    __m512i dots[2];
    CPU_UNROLLED
    for (int i = 0; i < 2; ++i)
        dots[i] = dot_vectors(_mm512_setzero_si512(), w->numbers[2 * p + i], x->numbers[2 * p + i]);
    const __m512i packed = _mm512_packs_epi32(dots[0], dots[1]);
    return _mm512_cvtepi32_ps(_mm512_madd_epi16(packed, w->scales[p])) * x->scales[p];
}

// sums[c].rows[r] += products of the rows' blocks with a part of each column.
CPU_INLINE void add_planes(const struct block_format f, struct lane_sums *sums,
                           const char *const *blocks, const struct rounded *x, const int columns) {
    struct plane_column column[ROUNDED_COLUMNS];
    float scales[QUARTERS], mins[QUARTERS];
    quarter_floats(blocks, f.scale_at, scales);
    quarter_floats(blocks, f.offset_at, mins);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        open_plane_column(&x[c], &column[c]);
    CPU_UNROLLED
    for (int r = 0; r < QUARTERS; ++r) {
        struct plane_row row;
        open_plane_row((const void *)blocks[r], &row);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m512 products = pair_sums(&row, &column[c], 0) + pair_sums(&row, &column[c], 1);
            sums[c].rows[r] += products * _mm512_set1_ps(scales[r]);
            sums[c].rows[r] -= row.mins * _mm512_loadu_ps(x[c].sums) * _mm512_set1_ps(mins[r]);
        }
    }
}

#endif
