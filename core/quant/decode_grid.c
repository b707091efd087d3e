// SPDX-License-Identifier: MIT
// Decoders of the types whose blocks hold indices of points of a grid. Every product below is
// exact.
#include "quant/quant_block.h"

// y = d * number, negated where `signs` has the bit.
static float *put_numbers(const void *numbers, int n, uint8_t signs, float d, float *y) {
    int8_t q[8];
    memcpy(q, numbers, (size_t)n);
    for (int j = 0; j < n; ++j)
        *y++ = d * (float)((signs >> j) & 1 ? -q[j] : q[j]);
    return y;
}

static float *put_eight(uint64_t point, uint8_t signs, float d, float *y) {
    return put_numbers(&point, 8, signs, d, y);
}

static float *put_two_fours(uint32_t first, uint32_t second, uint8_t signs, float d, float *y) {
    y = put_numbers(&first, 4, signs, d, y);
    return put_numbers(&second, 4, signs >> 4, d, y);
}

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

static void decode_block_iq2_xs(const block_iq2_xs *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d) / 8.0f;
    for (int i = 0; i < QK_K / 8; ++i) {
        const int nibble = (b->scales[i / 4] >> (4 * (i / 2 % 2))) & 15;
        const float scale = d * (float)(2 * nibble + 1);
        y = put_eight(ggml_grid_iq2_xs[b->qs[i] & 511], quant_sign_byte(b->qs[i] >> 9), scale, y);
    }
}
DECODE_ROW(iq2_xs, QK_K)

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

static int iq3_s_index(const block_iq3_s *b, int i) {
    return b->qs[i] | ((b->qh[i / 8] >> (i % 8)) & 1) << 8;
}

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
