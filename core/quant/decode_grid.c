// SPDX-License-Identifier: MIT
// Decoders of the types whose blocks hold indices of points of a grid. Every product below is
// exact.
#include "quant/quant_block.h"

// y = d * number, negated where `signs` has the bit. `numbers` are n signed bytes; returns the end
// of what was written, so that calls follow one another.
static float *put_numbers(const void *numbers, int n, uint8_t signs, float d, float *y) {
    int8_t q[8];
    memcpy(q, numbers, (size_t)n);
    for (int j = 0; j < n; ++j)
        *y++ = d * (float)((signs >> j) & 1 ? -q[j] : q[j]);
    return y;
}

// A point of eight coordinates, or two of four, with the eight signs of its elements.
static float *put_eight(uint64_t point, uint8_t signs, float d, float *y) {
    return put_numbers(&point, 8, signs, d, y);
}

static float *put_two_fours(uint32_t first, uint32_t second, uint8_t signs, float d, float *y) {
    y = put_numbers(&first, 4, signs, d, y);
    return put_numbers(&second, 4, signs >> 4, d, y);
}

// Per 32 elements: four bytes of indices, then a word with four codes of seven signs and a scale of
// four bits. Scales are odd multiples of d / 8, so that none is 0.
static void decode_block_iq2_xxs(const block_iq2_xxs *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d) / 8.0f;
    for (int g = 0; g < QK_K / 32; ++g) {
        const uint16_t *qs = b->qs + 4 * g;
        const uint32_t codes = qs[2] | (uint32_t)qs[3] << 16;
        const float scale = d * (float)(2 * (codes >> 28) + 1);
        for (int l = 0; l < 4; ++l) {
            const int index = (qs[l / 2] >> (8 * (l % 2))) & 255;
            y = put_eight(ggml_grid_iq2_xxs[index], quant_sign_byte(codes >> 7 * l & 127), scale,
                          y);
        }
    }
}
DECODE_ROW(iq2_xxs, QK_K)

// Per eight elements nine bits of index and seven of signs in one word; a scale of four bits per
// 16.
static void decode_block_iq2_xs(const block_iq2_xs *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d) / 8.0f;
    for (int i = 0; i < QK_K / 8; ++i) {
        const int nibble = (b->scales[i / 4] >> (4 * (i / 2 % 2))) & 15;
        const float scale = d * (float)(2 * nibble + 1);
        y = put_eight(ggml_grid_iq2_xs[b->qs[i] & 511], quant_sign_byte(b->qs[i] >> 9), scale, y);
    }
}
DECODE_ROW(iq2_xs, QK_K)

// Indices of ten bits, the upper two in qh; eight stored signs per eight elements follow the
// indices.
static void decode_block_iq2_s(const block_iq2_s *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d) / 8.0f;
    for (int i = 0; i < QK_K / 8; ++i) {
        const int nibble = (b->scales[i / 4] >> (4 * (i / 2 % 2))) & 15;
        const float scale = d * (float)(2 * nibble + 1);
        const int index = b->qs[i] | ((b->qh[i / 4] >> (2 * (i % 4))) & 3) << 8;
        y = put_eight(ggml_grid_iq2_s[index], b->qs[QK_K / 8 + i], scale, y);
    }
}
DECODE_ROW(iq2_s, QK_K)

// Two points of four elements share a byte of signs.
static void decode_block_iq3_xxs(const block_iq3_xxs *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d) / 4.0f;
    for (int g = 0; g < QK_K / 32; ++g) {
        const uint8_t *qs = b->qs + 8 * g;
        uint32_t codes;
        memcpy(&codes, b->qs + QK_K / 4 + 4 * g, sizeof(codes));
        const float scale = d * (float)(2 * (codes >> 28) + 1);
        for (int l = 0; l < 4; ++l) {
            y = put_two_fours(ggml_grid_iq3_xxs[qs[2 * l]], ggml_grid_iq3_xxs[qs[2 * l + 1]],
                              quant_sign_byte(codes >> 7 * l & 127), scale, y);
        }
    }
}
DECODE_ROW(iq3_xxs, QK_K)

// Index i of nine bits: the lowest eight in qs, the ninth in qh.
static int iq3_s_index(const block_iq3_s *b, int i) {
    return b->qs[i] | ((b->qh[i / 8] >> (i % 8)) & 1) << 8;
}

// No even-sign code here: `signs` has one bit per element, and a scale of four bits per 32.
static void decode_block_iq3_s(const block_iq3_s *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int i = 0; i < QK_K / 8; ++i) {
        const int nibble = (b->scales[i / 8] >> (4 * (i / 4 % 2))) & 15;
        const float scale = d * (float)(2 * nibble + 1);
        y = put_two_fours(ggml_grid_iq3_s[iq3_s_index(b, 2 * i)],
                          ggml_grid_iq3_s[iq3_s_index(b, 2 * i + 1)], b->signs[i], scale, y);
    }
}
DECODE_ROW(iq3_s, QK_K)

// A point of IQ1, all of it moved up or down by an eighth.
static float *put_moved(uint64_t point, int delta, float d, float *y) {
    int8_t q[8];
    memcpy(q, &point, sizeof(q));
    for (int j = 0; j < 8; ++j)
        *y++ = d * (float)(q[j] + delta);
    return y;
}

// qh holds, per 32 elements, the upper three bits of four indices, a scale of three bits, and the
// direction in which the points are moved.
static void decode_block_iq1_s(const block_iq1_s *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d) / 8.0f;
    for (int i = 0; i < QK_K / 8; ++i) {
        const int high = b->qh[i / 4];
        const float scale = d * (float)(2 * ((high >> 12) & 7) + 1);
        const int index = b->qs[i] | ((high >> (3 * (i % 4))) & 7) << 8;
        y = put_moved(ggml_grid_iq1[index], high & 0x8000 ? -1 : 1, scale, y);
    }
}
DECODE_ROW(iq1_s, QK_K)

// As IQ1_S with a scale per 16 elements and a direction per eight. The block's d is spread over the
// upper nibbles of the scales.
static void decode_block_iq1_m(const block_iq1_m *b, float *y) {
    uint16_t scales[QK_K / 64];
    memcpy(scales, b->scales, sizeof(scales));
    const float d = GGML_FP16_TO_FP32(quant_iq1_m_scale(scales)) / 8.0f;
    for (int i = 0; i < QK_K / 8; ++i) {
        const int high = (b->qh[i / 2] >> (4 * (i % 2))) & 15;
        const float scale = d * (float)(2 * ((scales[i / 8] >> (3 * (i / 2 % 4))) & 7) + 1);
        const int index = b->qs[i] | (high & 7) << 8;
        y = put_moved(ggml_grid_iq1[index], high & 8 ? -1 : 1, scale, y);
    }
}
DECODE_ROW(iq1_m, QK_K)
