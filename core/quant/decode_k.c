// SPDX-License-Identifier: MIT
// Decoders of the 256-element blocks.
#include "quant/quant_block.h"

enum { HALF = QK_K / 2 };

// Digit n (most significant first) of a byte of five base-3 digits, stored as a fraction: byte /
// 256 is the value / 243 rounded up, so that multiplying by 3^n modulo 256 brings digit n to the
// front.
static int trit(uint8_t byte, int n) {
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    const uint8_t shifted = (uint8_t)(byte * power[n]);
    return (shifted * 3) >> 8;
}

// Bytes interleave: digit n of all bytes comes before digit n + 1 of any, which vectors decode
// without shuffling.
static float *decode_trits(const uint8_t *qs, int n_bytes, int n_digits, float d, float *y) {
    for (int n = 0; n < n_digits; ++n) {
        for (int m = 0; m < n_bytes; ++m)
            *y++ = d * (float)(trit(qs[m], n) - 1);
    }
    return y;
}

// 240 elements in 48 bytes of five digits, the last 16 in four bytes of four.
static void decode_block_tq1_0(const block_tq1_0 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    y = decode_trits(b->qs, 32, 5, d, y);
    y = decode_trits(b->qs + 32, 16, 5, d, y);
    decode_trits(b->qh, 4, 4, d, y);
}
DECODE_ROW(tq1_0, QK_K)

// Digits of two bits, -1 .. 1, element i of a group of 32 bytes in bits 2 (i / 32) and up.
static void decode_block_tq2_0(const block_tq2_0 *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int i = 0; i < QK_K; ++i) {
        const int q = (b->qs[32 * (i / HALF) + i % 32] >> (2 * (i % HALF / 32))) & 3;
        y[i] = d * (float)(q - 1);
    }
}
DECODE_ROW(tq2_0, QK_K)

// value = d scale q - dmin min, a byte per 16 elements with four bits of scale and four of minimum.
static void decode_block_q2_K(const block_q2_K *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    const float dmin = GGML_FP16_TO_FP32(b->dmin);
    for (int g = 0; g < QK_K / 16; ++g) {
        const float scale = d * (float)(b->scales[g] & 15);
        const float min = dmin * (float)(b->scales[g] >> 4);
        const uint8_t *qs = b->qs + 32 * (g / 8) + 16 * (g % 2);
        const int shift = 2 * (g % 8 / 2);
        for (int l = 0; l < 16; ++l)
            *y++ = scale * (float)((qs[l] >> shift) & 3) - min;
    }
}
DECODE_ROW(q2_K, QK_K)

// Quants of three bits, -4 .. 3: two in qs, the inverted upper one in hmask. Scales of six bits.
static void decode_block_q3_K(const block_q3_K *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int g = 0; g < QK_K / 16; ++g) {
        const float scale = d * (float)quant_q3_scale(b->scales, g);
        const uint8_t *qs = b->qs + 32 * (g / 8) + 16 * (g % 2);
        const uint8_t *hmask = b->hmask + 16 * (g % 2);
        const int shift = 2 * (g % 8 / 2);
        for (int l = 0; l < 16; ++l) {
            const int high = (hmask[l] >> (g / 2)) & 1;
            *y++ = scale * (float)(((qs[l] >> shift) & 3) - (high ? 0 : 4));
        }
    }
}
DECODE_ROW(q3_K, QK_K)

// Factor and offset of a group of 32.
struct k4_group {
    float scale, min;
};

// The products d * scale and dmin * min, as every element of the group needs them.
static struct k4_group k4_group(ggml_fp16_t d, ggml_fp16_t dmin, const uint8_t *scales, int g) {
    int scale;
    int min;
    quant_k4_scale(scales, g, &scale, &min);
    return (struct k4_group){GGML_FP16_TO_FP32(d) * (float)scale,
                             GGML_FP16_TO_FP32(dmin) * (float)min};
}

// Groups of 32 in nibbles: groups 2 k and 2 k + 1 share 32 bytes.
static void decode_block_q4_K(const block_q4_K *b, float *y) {
    for (int g = 0; g < QK_K / 32; ++g) {
        const struct k4_group of = k4_group(b->d, b->dmin, b->scales, g);
        const uint8_t *qs = b->qs + 32 * (g / 2);
        const int shift = 4 * (g % 2);
        for (int l = 0; l < 32; ++l)
            *y++ = of.scale * (float)((qs[l] >> shift) & 15) - of.min;
    }
}
DECODE_ROW(q4_K, QK_K)

// As Q4_K; bit g of qh[l] is the fifth bit of element l of group g.
static void decode_block_q5_K(const block_q5_K *b, float *y) {
    for (int g = 0; g < QK_K / 32; ++g) {
        const struct k4_group of = k4_group(b->d, b->dmin, b->scales, g);
        const uint8_t *qs = b->qs + 32 * (g / 2);
        const int shift = 4 * (g % 2);
        for (int l = 0; l < 32; ++l) {
            const int q = ((qs[l] >> shift) & 15) | ((b->qh[l] >> g) & 1) << 4;
            *y++ = of.scale * (float)q - of.min;
        }
    }
}
DECODE_ROW(q5_K, QK_K)

// Quants of six bits, -32 .. 31: nibbles in ql, pairs of bits in qh, each half of a block by
// itself; a signed byte of scale per 16.
static void decode_block_q6_K(const block_q6_K *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int g = 0; g < QK_K / 16; ++g) {
        const int half = g / 8;
        const int quarter = g % 8 / 2;
        const uint8_t *ql = b->ql + 64 * half + 32 * (quarter % 2) + 16 * (g % 2);
        const uint8_t *qh = b->qh + 32 * half + 16 * (g % 2);
        const int low_shift = 4 * (quarter / 2);
        const int high_shift = 2 * quarter;
        const float scale = d * (float)b->scales[g];
        for (int l = 0; l < 16; ++l) {
            const int q = ((ql[l] >> low_shift) & 15) | ((qh[l] >> high_shift) & 3) << 4;
            *y++ = scale * (float)(q - 32);
        }
    }
}
DECODE_ROW(q6_K, QK_K)

// Values of the non-linear table times a scale of six bits per 32: four in scales_l, two in
// scales_h, offset by 32.
static void decode_block_iq4_xs(const block_iq4_xs *b, float *y) {
    const float d = GGML_FP16_TO_FP32(b->d);
    for (int g = 0; g < QK_K / 32; ++g) {
        const int low = (b->scales_l[g / 2] >> (4 * (g % 2))) & 15;
        const int high = (b->scales_h >> (2 * g)) & 3;
        const float scale = d * (float)((low | high << 4) - 32);
        const uint8_t *qs = b->qs + 16 * g;
        for (int j = 0; j < 16; ++j) {
            y[j] = scale * (float)QUANT_IQ4[qs[j] & 15];
            y[j + 16] = scale * (float)QUANT_IQ4[qs[j] >> 4];
        }
        y += 32;
    }
}
DECODE_ROW(iq4_xs, QK_K)
