// SPDX-License-Identifier: MIT
// Types whose blocks hold indices of grid points: part of blocks.h, with their open_<name>().
#ifndef CPU_BLOCKS_GRID_H
#define CPU_BLOCKS_GRID_H

#include "ggml-impl.h"
#include "simd/bytes.h"

typedef uint16_t v8h __attribute__((vector_size(16)));
typedef uint64_t v4q __attribute__((vector_size(32)));
typedef uint16_t v16h __attribute__((vector_size(32)));
typedef uint32_t v8w __attribute__((vector_size(32)));
typedef uint8_t v8b __attribute__((vector_size(8)));

// Scales (2 s + 1) * factor of 16 nibbles s.
CPU_INLINE void open_nibbles_16(const uint8_t *packed, float factor, struct opened *o) {
    int8_t scales[MAX_GROUPS];
    const uint64_t low_half = UINT64_C(0x0F0F0F0F0F0F0F0F);
    uint64_t all;
    memcpy(&all, packed, sizeof(all));
    const v16b both = (v16b)(v2q){all & low_half, all >> 4 & low_half};
    const v16b s =
        __builtin_shufflevector(both, both, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    const v16b q = s + s + 1;
    memcpy(scales, &q, sizeof(q));
    o->scales[0] *= factor;
    scale_groups(o->scales, scales, MAX_GROUPS);
}

// The same of eight fields s, each in a byte.
CPU_INLINE void open_bytes_8(uint64_t s, float factor, struct opened *o) {
    int8_t scales[MAX_GROUPS] = {0};
    const uint64_t q = s + s + UINT64_C(0x0101010101010101);
    memcpy(scales, &q, sizeof(q));
    o->scales[0] *= factor;
    scale_groups(o->scales, scales, 8);
}

// Adds the eighth sign to each group of seven, such that the number of negative signs is even.
// Eight words of four groups at a time.
CPU_INLINE void add_eighth_signs(const v8w *sevens, uint32_t *signs) {
    const v8w x = *sevens;
    v8w odd = x ^ (x >> 4 & 0x07070707);
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    odd = x | (odd & 0x01010101) << 7;
    memcpy(signs, &odd, sizeof(odd));
}

// 28 bits of each word, four codes of seven signs, become four bytes of signs; the others, a scale
// s, become scales (2 s + 1) * factor.
CPU_INLINE void open_codes(const v8w *words, uint32_t *signs, float factor, struct opened *o) {
    const v8w codes = *words;
    const v8w x = (codes & 0x7F) | (codes << 1 & 0x7F00) | (codes << 2 & 0x7F0000) |
                  (codes << 3 & 0x7F000000);
    const v8b s = __builtin_convertvector(codes >> 28, v8b);
    uint64_t scales;
    memcpy(&scales, &s, sizeof(s));
    open_bytes_8(scales, factor, o);
    add_eighth_signs(&x, signs);
}

// Eight indices from their low bytes and, of each of two words, four fields that `factors` move to
// the same place.
CPU_INLINE void open_indices(const uint8_t *low, uint16_t first, uint16_t second,
                             const v8h *factors, const int shift, const int mask, uint16_t *index) {
    const v8h copies = {first, first, first, first, second, second, second, second};
    v8b bytes;
    memcpy(&bytes, low, sizeof(bytes));
    const v8h both =
        __builtin_convertvector(bytes, v8h) | (copies * *factors >> shift & (uint16_t)mask);
    memcpy(index, &both, sizeof(both));
}

// 32 numbers from four points of eight, negated where the 32 bits of `signs` are set.
CPU_INLINE void store_eights(int8_t *numbers, const uint64_t *points, uint32_t signs) {
    CPU_UNROLLED
    for (int j = 0; j < 32; j += BYTES, points += BYTES / 8)
        vb_store(numbers + j, vb_negate(vb_eights(points), signs >> j));
}

// The same from eight points of four.
CPU_INLINE void store_fours(int8_t *numbers, const uint32_t *points, uint32_t signs) {
    CPU_UNROLLED
    for (int j = 0; j < 32; j += BYTES, points += BYTES / 4)
        vb_store(numbers + j, vb_negate(vb_fours(points), signs >> j));
}

// 32 numbers from four points of eight times an eighth, each moved up by one, or down if bit 3, 7,
// 11 or 15 of `down` is set.
CPU_INLINE void store_moved(int8_t *numbers, const uint64_t *points, uint32_t down) {
    CPU_UNROLLED
    for (int j = 0; j < 32; j += BYTES, points += BYTES / 8) {
        const v4q shifts = {3, 7, 11, 15};
        const v4q flags = ((v4q){0} + (down >> j / 2)) >> shifts & 1;
        const v4q ones = -flags | UINT64_C(0x0101010101010101);
        uint64_t moves[4];
        memcpy(moves, &ones, sizeof(ones));
        vb_store(numbers + j, vb_eights(points) + vb_eights(moves));
    }
}

// IQ2_XXS: per 32 elements four indices of a byte, then a word with four times seven bits of
// signs and a scale of four bits.
CPU_INLINE const int8_t *open_iq2_xxs(const block_iq2_xxs *b, struct opened *o) {
    v8w first, second;
    uint32_t signs[8];
    memcpy(&first, b->qs, sizeof(first));
    memcpy(&second, b->qs + QK_K / 16, sizeof(second));
    const v8w codes = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15);
    open_codes(&codes, signs, 0.125f, o);
    for (int g = 0; g < 8; ++g) {
        const uint8_t *indices = (const uint8_t *)(b->qs + 4 * g);
        uint64_t points[4];
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq2_xxs[indices[i]];
        store_eights(o->numbers + 32 * g, points, signs[g]);
    }
    return o->numbers;
}

// IQ2_XS: per eight elements nine bits of index and seven of signs; scales of four bits per 16.
CPU_INLINE const int8_t *open_iq2_xs(const block_iq2_xs *b, struct opened *o) {
    uint32_t signs[8];
    v8w bytes;
    uint8_t codes[QK_K / 8];
    for (int i = 0; i < QK_K / 8; ++i)
        codes[i] = (uint8_t)(b->qs[i] >> 9);
    memcpy(&bytes, codes, sizeof(bytes));
    add_eighth_signs(&bytes, signs);
    open_nibbles_16(b->scales, 0.125f, o);
    for (int g = 0; g < 8; ++g) {
        uint64_t points[4];
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq2_xs[b->qs[4 * g + i] & 511];
        store_eights(o->numbers + 32 * g, points, signs[g]);
    }
    return o->numbers;
}

// IQ2_S: ten bits of index, a sign bit per element, scales of four bits per 16.
CPU_INLINE const int8_t *open_iq2_s(const block_iq2_s *b, struct opened *o) {
    open_nibbles_16(b->scales, 0.125f, o);
    for (int g = 0; g < 8; ++g) {
        const uint32_t high = (uint32_t)b->qh[g] << 8;
        uint32_t signs;
        uint64_t points[4];
        memcpy(&signs, b->qs + QK_K / 8 + 4 * g, sizeof(signs));
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq2_s[b->qs[4 * g + i] | (high >> 2 * i & 0x300)];
        store_eights(o->numbers + 32 * g, points, signs);
    }
    return o->numbers;
}

// IQ3_XXS: an index of a byte per four elements, then signs and scales as in IQ2_XXS.
CPU_INLINE const int8_t *open_iq3_xxs(const block_iq3_xxs *b, struct opened *o) {
    v8w codes;
    uint32_t signs[8];
    memcpy(&codes, b->qs + QK_K / 4, sizeof(codes));
    open_codes(&codes, signs, 0.25f, o);
    for (int g = 0; g < 8; ++g) {
        uint32_t points[8];
        CPU_UNROLLED
        for (int i = 0; i < 8; ++i)
            points[i] = ggml_grid_iq3_xxs[b->qs[8 * g + i]];
        store_fours(o->numbers + 32 * g, points, signs[g]);
    }
    return o->numbers;
}

// Eight indices from their low bytes and a ninth bit each.
CPU_INLINE void open_nine_bits(const uint8_t *low, uint16_t ninth, uint16_t *index) {
    const v8h set = {1, 2, 4, 8, 16, 32, 64, 128};
    const v8h copies = (v8h){0} + ninth;
    v8b bytes;
    memcpy(&bytes, low, sizeof(bytes));
    const v8h both = __builtin_convertvector(bytes, v8h) | ((v8h)((copies & set) == set) & 256);
    memcpy(index, &both, sizeof(both));
}

// IQ3_S: nine bits of index per four elements, a sign bit per element, scales of four bits per
// 32.
CPU_INLINE const int8_t *open_iq3_s(const block_iq3_s *b, struct opened *o) {
    uint16_t index[QK_K / 4];
    uint32_t scales;
    memcpy(&scales, b->scales, sizeof(scales));
    open_bytes_8(spread_fields(scales, 4), 1.0f, o);
    for (int i = 0; i < QK_K / 4; i += 8)
        open_nine_bits(b->qs + i, b->qh[i / 8], index + i);
    CPU_IN_MEMORY(index);
    for (int g = 0; g < 8; ++g) {
        uint32_t signs, points[8];
        memcpy(&signs, b->signs + 4 * g, sizeof(signs));
        CPU_UNROLLED
        for (int i = 0; i < 8; ++i)
            points[i] = ggml_grid_iq3_s[index[8 * g + i]];
        store_fours(o->numbers + 32 * g, points, signs);
    }
    return o->numbers;
}

// IQ1_S: eleven bits of index per eight elements; a word per 32 has upper bits, scale and the
// direction in which all are moved.
CPU_INLINE const int8_t *open_iq1_s(const block_iq1_s *b, struct opened *o) {
    v8h words;
    memcpy(&words, b->qh, sizeof(words));
    const v8b s = __builtin_convertvector(words >> 12 & 7, v8b);
    uint64_t scales;
    memcpy(&scales, &s, sizeof(s));
    open_bytes_8(scales, 0.125f, o);
    const v8h factors = {512, 64, 8, 1, 512, 64, 8, 1};
    uint16_t index[QK_K / 8];
    for (int i = 0; i < QK_K / 8; i += 8)
        open_indices(b->qs + i, b->qh[i / 4], b->qh[i / 4 + 1], &factors, 1, 0x700, index + i);
    CPU_IN_MEMORY(index);
    for (int g = 0; g < 8; ++g) {
        uint64_t points[4];
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq1[index[4 * g + i]];
        const vb move = (vb){0} + (uint8_t)(1 - (b->qh[g] >> 14 & 2));
        CPU_UNROLLED
        for (int j = 0; j < 32; j += BYTES)
            vb_store(o->numbers + 32 * g + j, vb_eights(points + j / 8) + move);
    }
    return o->numbers;
}

// IQ1_M: 16 scales of three bits; the upper four bits of each word make up the block's scale.
CPU_INLINE void open_iq1_m_scales(const block_iq1_m *b, struct opened *o) {
    int8_t scales[MAX_GROUPS];
    uint16_t words[4];
    memcpy(words, b->scales, sizeof(words));
    const ggml_half d = (ggml_half)(words[0] >> 12 | (words[1] >> 8 & 0x00F0) |
                                    (words[2] >> 4 & 0x0F00) | (words[3] & 0xF000));
    cpu_f16_to_f32(o->scales, &d, 1);
    o->scales[0] *= 0.125f;
    // The product moves each of four fields of three bits to bit 9.
    const v16h factors = {512, 64, 8, 1, 512, 64, 8, 1, 512, 64, 8, 1, 512, 64, 8, 1};
    const v16h copies = {words[0], words[0], words[0], words[0], words[1], words[1],
                         words[1], words[1], words[2], words[2], words[2], words[2],
                         words[3], words[3], words[3], words[3]};
    const v16b s = __builtin_convertvector(copies * factors >> 9 & 7, v16b);
    const v16b q = s + s + 1;
    memcpy(scales, &q, sizeof(q));
    scale_groups(o->scales, scales, MAX_GROUPS);
}

// IQ1_M: like IQ1_S, with upper bits and direction in a nibble per eight elements.
CPU_INLINE const int8_t *open_iq1_m(const block_iq1_m *b, struct opened *o) {
    const v8h factors = {4096, 256, 16, 1, 4096, 256, 16, 1};
    uint16_t index[QK_K / 8], high[QK_K / 32];
    memcpy(high, b->qh, sizeof(high));
    open_iq1_m_scales(b, o);
    for (int i = 0; i < QK_K / 8; i += 8)
        open_indices(b->qs + i, high[i / 4], high[i / 4 + 1], &factors, 4, 0x700, index + i);
    CPU_IN_MEMORY(index);
    for (int g = 0; g < 8; ++g) {
        uint64_t points[4];
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq1[index[4 * g + i]];
        store_moved(o->numbers + 32 * g, points, high[g]);
    }
    return o->numbers;
}

#endif
