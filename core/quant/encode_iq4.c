// SPDX-License-Identifier: MIT
// Encoders of the non-linear four-bit types and of the ternary ones. w holds an importance per
// element, or is NULL: then the squares of the elements count.
#include "quant/quant_block.h"

// Index of the nearest table entry; of two equally near ones the higher.
static int nearest_iq4(float x) {
    if (!(x > (float)QUANT_IQ4[0])) return 0;
    int high = 1;
    while (high < 15 && x >= (float)QUANT_IQ4[high])
        ++high;
    if (x >= (float)QUANT_IQ4[15]) return 15;
    return x - (float)QUANT_IQ4[high - 1] < (float)QUANT_IQ4[high] - x ? high - 1 : high;
}

static void sum_iq4(const float *x, const float *importance, float id, float *out_xq,
                    float *out_q2) {
    *out_xq = 0.0f;
    *out_q2 = 0.0f;
    for (int j = 0; j < 32; ++j) {
        const float q = (float)QUANT_IQ4[nearest_iq4(id * x[j])];
        const float w = importance ? importance[j] : x[j] * x[j];
        *out_xq += w * q * x[j];
        *out_q2 += w * q * q;
    }
}

// Weighted least-squares scale of 32 elements over 2 * trials + 1 trial scales; 0 when all are
// tiny.
static float search_iq4(const float *x, const float *w, int trials) {
    const float max = quant_signed_max(x, 32);
    if (fabsf(max) < 1e-15f) return 0.0f;
    const float first = (float)QUANT_IQ4[0];
    float xq;
    float q2;
    sum_iq4(x, w, quant_inverse((trials > 0 ? -max : max) / first), &xq, &q2);
    float d = q2 > 0.0f ? xq / q2 : 0.0f;
    float best = d * xq;
    for (int k = -trials; k <= trials; ++k) {
        sum_iq4(x, w, ((float)k + first) / max, &xq, &q2);
        if (q2 > 0.0f && xq * xq > best * q2) {
            d = xq / q2;
            best = d * xq;
        }
    }
    return d;
}

static void put_iq4(const float *x, float id, uint8_t *qs) {
    for (int j = 0; j < 16; ++j) {
        qs[j] = (uint8_t)(nearest_iq4(id * x[j]) | nearest_iq4(id * x[j + 16]) << 4);
    }
}

enum { TRIALS = 7 };

static void encode_block_iq4_nl(const float *x, const float *w, block_iq4_nl *b) {
    const float d = search_iq4(x, w, TRIALS);
    b->d = GGML_FP32_TO_FP16(d);
    put_iq4(x, quant_inverse(d), b->qs);
}
ENCODE_ROW_BOTH(iq4_nl, QK4_NL)

static void encode_block_iq4_xs(const float *x, const float *w, block_iq4_xs *b) {
    float scales[QK_K / 32];
    for (int g = 0; g < QK_K / 32; ++g)
        scales[g] = search_iq4(x + 32 * g, w ? w + 32 * g : NULL, TRIALS);
    const float d = -quant_signed_max(scales, QK_K / 32) / 32.0f;
    const float id = quant_inverse(d);
    memset(b, 0, sizeof(*b));
    b->d = GGML_FP32_TO_FP16(d);
    for (int g = 0; g < QK_K / 32; ++g) {
        const int scale = quant_nearest(id * scales[g], -32, 31);
        put_iq4(x + 32 * g, quant_inverse(d * (float)scale), b->qs + 16 * g);
        b->scales_l[g / 2] |= (uint8_t)(((scale + 32) & 15) << (4 * (g % 2)));
        b->scales_h |= (uint16_t)(((scale + 32) >> 4) << (2 * g));
    }
}
ENCODE_ROW_BOTH(iq4_xs, QK_K)

static int ternary(float scaled) {
    return quant_truncate(roundf(scaled) + 1.0f, 0, 2);
}

// Packs n_digits * n_bytes elements, most significant digit first, into bytes that hold five digits
// each.
static const float *encode_trits(const float *x, float id, int n_bytes, int n_digits, uint8_t *qs) {
    for (int m = 0; m < n_bytes; ++m) {
        int value = 0;
        for (int n = 0; n < 5; ++n) {
            value = 3 * value + (n < n_digits ? ternary(x[m + n * n_bytes] * id) : 0);
        }
        qs[m] = (uint8_t)((value * 256 + 242) / 243);
    }
    return x + n_bytes * n_digits;
}

static void encode_block_tq1_0(const float *x, block_tq1_0 *b) {
    const float d = fabsf(quant_signed_max(x, QK_K));
    const float id = quant_inverse(d);
    b->d = GGML_FP32_TO_FP16(d);
    x = encode_trits(x, id, 32, 5, b->qs);
    x = encode_trits(x, id, 16, 5, b->qs + 32);
    encode_trits(x, id, 4, 4, b->qh);
}
ENCODE_ROW(tq1_0, QK_K)

static void encode_block_tq2_0(const float *x, block_tq2_0 *b) {
    const float d = fabsf(quant_signed_max(x, QK_K));
    const float id = quant_inverse(d);
    memset(b, 0, sizeof(*b));
    b->d = GGML_FP32_TO_FP16(d);
    for (int i = 0; i < QK_K; ++i) {
        b->qs[32 * (i / 128) + i % 32] |= (uint8_t)(ternary(x[i] * id) << (2 * (i % 128 / 32)));
    }
}
ENCODE_ROW(tq2_0, QK_K)
