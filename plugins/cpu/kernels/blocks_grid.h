// SPDX-License-Identifier: MIT
// The types whose blocks hold indices of points of a grid: the part of blocks.h, which includes
// this, that has their open_<name>().
#ifndef CPU_BLOCKS_GRID_H
#define CPU_BLOCKS_GRID_H

#include "bytes.h"
#include "ggml-impl.h"

typedef uint64_t vb_eights __attribute__((vector_size(BYTES)));
typedef uint32_t vb_fours __attribute__((vector_size(BYTES)));

// 28 bits: four codes of seven signs become bytes; the eighth sign of each makes their number even.
CPU_INLINE uint32_t sign_bytes(uint32_t codes) {
    const uint32_t x = (codes & 0x7F) | (codes << 1 & 0x7F00) | (codes << 2 & 0x7F0000) |
                       (codes << 3 & 0x7F000000);
    uint32_t odd = x ^ (x >> 4 & 0x07070707);
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return x | (odd & 0x01010101) << 7;
}

// 32 numbers from four points of eight, negated where the 32 bits of `signs` are set.
CPU_INLINE void store_eights(int8_t *numbers, const uint64_t *points, uint32_t signs) {
    CPU_UNROLLED
    for (int j = 0; j < 32; j += BYTES) {
        const uint32_t bits = signs >> j;
        uint8_t bytes[4];
        vb_eights q = {0};
        memcpy(bytes, &bits, sizeof(bytes));
        CPU_UNROLLED
        for (int i = 0; i < BYTES / 8; ++i)
            q[i] = points[j / 8 + i];
        const vb mask = vb_mask(bytes);
        vb_store(numbers + j, ((vb)q ^ mask) - mask);
    }
}

// The same from eight points of four.
CPU_INLINE void store_fours(int8_t *numbers, const uint32_t *points, uint32_t signs) {
    CPU_UNROLLED
    for (int j = 0; j < 32; j += BYTES) {
        const uint32_t bits = signs >> j;
        uint8_t bytes[4];
        vb_fours q = {0};
        memcpy(bytes, &bits, sizeof(bytes));
        CPU_UNROLLED
        for (int i = 0; i < BYTES / 4; ++i)
            q[i] = points[j / 4 + i];
        const vb mask = vb_mask(bytes);
        vb_store(numbers + j, ((vb)q ^ mask) - mask);
    }
}

// 32 numbers from four points of eight, and what is added to each of them.
CPU_INLINE void store_moved(int8_t *numbers, const uint64_t *points, const uint64_t *deltas) {
    CPU_UNROLLED
    for (int j = 0; j < 32; j += BYTES) {
        vb_eights q = {0}, delta = {0};
        CPU_UNROLLED
        for (int i = 0; i < BYTES / 8; ++i) {
            q[i] = points[j / 8 + i];
            delta[i] = deltas[j / 8 + i];
        }
        vb_store(numbers + j, (vb)q + (vb)delta);
    }
}

// Eight ones of either sign: an eighth, as the points of IQ1 are times eight.
CPU_INLINE uint64_t eighths(uint32_t negative) {
    return negative ? UINT64_MAX : UINT64_C(0x0101010101010101);
}

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

CPU_INLINE const int8_t *open_iq2_xxs(const block_iq2_xxs *b, struct opened *o) {
    uint64_t s = 0;
    for (int g = 0; g < 8; ++g) {
        uint32_t words[2];
        memcpy(words, b->qs + 4 * g, sizeof(words));
        uint64_t points[4];
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq2_xxs[words[0] >> 8 * i & 255];
        store_eights(o->numbers + 32 * g, points, sign_bytes(words[1]));
        s |= (uint64_t)(words[1] >> 28) << 8 * g;
    }
    open_bytes_8(s, 0.125f, o);
    return o->numbers;
}

CPU_INLINE const int8_t *open_iq2_xs(const block_iq2_xs *b, struct opened *o) {
    open_nibbles_16(b->scales, 0.125f, o);
    for (int g = 0; g < 8; ++g) {
        uint64_t qs, points[4];
        memcpy(&qs, b->qs + 4 * g, sizeof(qs));
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq2_xs[qs >> 16 * i & 511];
        const uint64_t codes = qs >> 9 & UINT64_C(0x007F007F007F007F);
        const uint64_t pairs = (codes | codes >> 9) & UINT64_C(0x00003FFF00003FFF);
        store_eights(o->numbers + 32 * g, points, sign_bytes((uint32_t)(pairs | pairs >> 18)));
    }
    return o->numbers;
}

CPU_INLINE const int8_t *open_iq2_s(const block_iq2_s *b, struct opened *o) {
    open_nibbles_16(b->scales, 0.125f, o);
    for (int g = 0; g < 8; ++g) {
        const uint32_t high = b->qh[g];
        uint32_t signs;
        uint64_t points[4];
        memcpy(&signs, b->qs + QK_K / 8 + 4 * g, sizeof(signs));
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq2_s[b->qs[4 * g + i] | (high << (8 - 2 * i) & 0x300)];
        store_eights(o->numbers + 32 * g, points, signs);
    }
    return o->numbers;
}

CPU_INLINE const int8_t *open_iq3_xxs(const block_iq3_xxs *b, struct opened *o) {
    uint64_t s = 0;
    for (int g = 0; g < 8; ++g) {
        uint32_t codes, points[8];
        memcpy(&codes, b->qs + QK_K / 4 + 4 * g, sizeof(codes));
        CPU_UNROLLED
        for (int i = 0; i < 8; ++i)
            points[i] = ggml_grid_iq3_xxs[b->qs[8 * g + i]];
        store_fours(o->numbers + 32 * g, points, sign_bytes(codes));
        s |= (uint64_t)(codes >> 28) << 8 * g;
    }
    open_bytes_8(s, 0.25f, o);
    return o->numbers;
}

CPU_INLINE const int8_t *open_iq3_s(const block_iq3_s *b, struct opened *o) {
    uint32_t scales;
    memcpy(&scales, b->scales, sizeof(scales));
    open_bytes_8(spread_fields(scales, 4), 1.0f, o);
    for (int g = 0; g < 8; ++g) {
        const uint32_t high = b->qh[g];
        uint32_t signs, points[8];
        memcpy(&signs, b->signs + 4 * g, sizeof(signs));
        CPU_UNROLLED
        for (int i = 0; i < 8; ++i)
            points[i] = ggml_grid_iq3_s[b->qs[8 * g + i] | (high << (8 - i) & 256)];
        store_fours(o->numbers + 32 * g, points, signs);
    }
    return o->numbers;
}

CPU_INLINE const int8_t *open_iq1_s(const block_iq1_s *b, struct opened *o) {
    uint64_t s = 0;
    for (int g = 0; g < 8; ++g) {
        const uint32_t high = b->qh[g];
        const uint64_t delta = eighths(high & 0x8000);
        const uint64_t deltas[4] = {delta, delta, delta, delta};
        uint64_t points[4];
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i)
            points[i] = ggml_grid_iq1[b->qs[4 * g + i] | (high >> 3 * i & 7) << 8];
        store_moved(o->numbers + 32 * g, points, deltas);
        s |= (uint64_t)(high >> 12 & 7) << 8 * g;
    }
    open_bytes_8(s, 0.125f, o);
    return o->numbers;
}

CPU_INLINE void open_iq1_m_scales(const block_iq1_m *b, struct opened *o) {
    int8_t scales[MAX_GROUPS];
    uint16_t words[4];
    memcpy(words, b->scales, sizeof(words));
    const ggml_half d = (ggml_half)(words[0] >> 12 | (words[1] >> 8 & 0x00F0) |
                                    (words[2] >> 4 & 0x0F00) | (words[3] & 0xF000));
    cpu_f16_to_f32(o->scales, &d, 1);
    o->scales[0] *= 0.125f;
    for (int g = 0; g < MAX_GROUPS; ++g)
        scales[g] = (int8_t)(2 * (words[g / 4] >> 3 * (g % 4) & 7) + 1);
    scale_groups(o->scales, scales, MAX_GROUPS);
}

CPU_INLINE const int8_t *open_iq1_m(const block_iq1_m *b, struct opened *o) {
    open_iq1_m_scales(b, o);
    for (int g = 0; g < 8; ++g) {
        const uint32_t high = b->qh[2 * g] | (uint32_t)b->qh[2 * g + 1] << 8;
        uint64_t points[4], deltas[4];
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i) {
            points[i] = ggml_grid_iq1[b->qs[4 * g + i] | (high >> 4 * i & 7) << 8];
            deltas[i] = eighths(high & 8u << 4 * i);
        }
        store_moved(o->numbers + 32 * g, points, deltas);
    }
    return o->numbers;
}

#endif
