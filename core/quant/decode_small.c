// SPDX-License-Identifier: MIT
// Decoders of the types whose blocks have one scale, or one per 16 elements.
#include "quant/quant_block.h"

// One bit per element: d or -d.
static void decode_block_q1_0(const block_q1_0 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int j = 0; j < QK1_0; ++j)
        y[j] = (b->qs[j / 8] >> (j % 8)) & 1 ? d : -d;
}
DECODE_ROW(q1_0, QK1_0)

// Two bits per element: -d, 0, d or 2 d.
static void decode_block_q2_0(const block_q2_0 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int j = 0; j < QK2_0; ++j) {
        y[j] = d * (float)(((b->qs[j / 4] >> (2 * (j % 4))) & 3) - 1);
    }
}
DECODE_ROW(q2_0, QK2_0)

// The low nibbles are the first half of a block, the high ones the second, here and in all types
// with QK / 2 bytes.
static void decode_block_q4_0(const block_q4_0 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int j = 0; j < QK4_0 / 2; ++j) {
        y[j] = d * (float)((b->qs[j] & 15) - 8);
        y[j + QK4_0 / 2] = d * (float)((b->qs[j] >> 4) - 8);
    }
}
DECODE_ROW(q4_0, QK4_0)

// value = d q + m with a minimum m per block.
static void decode_block_q4_1(const block_q4_1 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    const float m = GGML_FP16_TO_FP32(b->m);
    for (int j = 0; j < QK4_1 / 2; ++j) {
        y[j] = d * (float)(b->qs[j] & 15) + m;
        y[j + QK4_1 / 2] = d * (float)(b->qs[j] >> 4) + m;
    }
}
DECODE_ROW(q4_1, QK4_1)

// The five bits of element j.
static int five_bits(const uint8_t *qh, const uint8_t *qs, int j) {
    const int low = j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
    return low | ((qh[j / 8] >> (j % 8)) & 1) << 4;
}

// The fifth bits of all elements are a word of 32 bits.
static void decode_block_q5_0(const block_q5_0 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int j = 0; j < QK5_0; ++j)
        y[j] = d * (float)(five_bits(b->qh, b->qs, j) - 16);
}
DECODE_ROW(q5_0, QK5_0)

static void decode_block_q5_1(const block_q5_1 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    const float m = GGML_FP16_TO_FP32(b->m);
    for (int j = 0; j < QK5_1; ++j)
        y[j] = d * (float)five_bits(b->qh, b->qs, j) + m;
}
DECODE_ROW(q5_1, QK5_1)

static void decode_block_q8_0(const block_q8_0 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int j = 0; j < QK8_0; ++j)
        y[j] = d * (float)b->qs[j];
}
DECODE_ROW(q8_0, QK8_0)

// OCP microscaling: E2M1 values with a power of two per 32 elements. Table entries are doubled, and
// the scale is half of the stored one.
static void decode_block_mxfp4(const block_mxfp4 *b, float *y) {
    const float d = GGML_E8M0_TO_FP32_HALF(b->e);
    for (int j = 0; j < QK_MXFP4 / 2; ++j) {
        y[j] = (float)QUANT_FP4[b->qs[j] & 15] * d;
        y[j + QK_MXFP4 / 2] = (float)QUANT_FP4[b->qs[j] >> 4] * d;
    }
}
DECODE_ROW(mxfp4, QK_MXFP4)

// E2M1 with an E4M3 scale per 16 elements.
static void decode_block_nvfp4(const block_nvfp4 *b, float *y) {
    for (int s = 0; s < QK_NVFP4 / QK_NVFP4_SUB; ++s) {
        const float d = quant_ue4m3_half(b->d[s]);
        const uint8_t *qs = b->qs + s * QK_NVFP4_SUB / 2;
        float *out = y + s * QK_NVFP4_SUB;
        for (int j = 0; j < QK_NVFP4_SUB / 2; ++j) {
            out[j] = (float)QUANT_FP4[qs[j] & 15] * d;
            out[j + QK_NVFP4_SUB / 2] = (float)QUANT_FP4[qs[j] >> 4] * d;
        }
    }
}
DECODE_ROW(nvfp4, QK_NVFP4)

// Sixteen unevenly spaced values, denser around 0, where weights are.
static void decode_block_iq4_nl(const block_iq4_nl *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int j = 0; j < QK4_NL / 2; ++j) {
        y[j] = d * (float)QUANT_IQ4[b->qs[j] & 15];
        y[j + QK4_NL / 2] = d * (float)QUANT_IQ4[b->qs[j] >> 4];
    }
}
DECODE_ROW(iq4_nl, QK4_NL)
