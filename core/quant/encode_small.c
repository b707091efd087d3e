// SPDX-License-Identifier: MIT
// Encoders of the types whose blocks have one scale, or one per 16 elements. Scales are derived in
// F32, elements are rounded with the unrounded scale, and only then is the scale stored in F16.
#include "quant/quant_block.h"

static void encode_block_q1_0(const float *x, block_q1_0 *b) {
    float sum = 0.0f;
    memset(b, 0, sizeof(*b));
    for (int j = 0; j < QK1_0; ++j) {
        sum += fabsf(x[j]);
        if (x[j] >= 0.0f) b->qs[j / 8] |= (uint8_t)(1u << (j % 8));
    }
    b->d = GGML_FP32_TO_FP16(sum / QK1_0);
}
ENCODE_ROW(q1_0, QK1_0)

static void encode_block_q2_0(const float *x, block_q2_0 *b) {
    const float d = fabsf(quant_signed_max(x, QK2_0));
    const float id = quant_inverse(d);
    memset(b, 0, sizeof(*b));
    for (int j = 0; j < QK2_0; ++j) {
        const int q = quant_truncate(roundf(x[j] * id) + 1.0f, 0, 3);
        b->qs[j / 4] |= (uint8_t)(q << (2 * (j % 4)));
    }
    b->d = GGML_FP32_TO_FP16(d);
}
ENCODE_ROW(q2_0, QK2_0)

static void encode_block_q4_0(const float *x, block_q4_0 *b) {
    const float d = quant_signed_max(x, QK4_0) / -8.0f;
    const float id = quant_inverse(d);
    for (int j = 0; j < QK4_0 / 2; ++j) {
        const int low = quant_truncate(x[j] * id + 8.5f, 0, 15);
        const int high = quant_truncate(x[j + QK4_0 / 2] * id + 8.5f, 0, 15);
        b->qs[j] = (uint8_t)(low | high << 4);
    }
    b->d = GGML_FP32_TO_FP16(d);
}
ENCODE_ROW(q4_0, QK4_0)

static void find_range(const float *x, int n, float *out_min, float *out_max) {
    *out_min = x[0];
    *out_max = x[0];
    for (int j = 1; j < n; ++j) {
        if (x[j] < *out_min) *out_min = x[j];
        if (x[j] > *out_max) *out_max = x[j];
    }
}

static void encode_block_q4_1(const float *x, block_q4_1 *b) {
    float min;
    float max;
    find_range(x, QK4_1, &min, &max);
    const float d = (max - min) / 15.0f;
    const float id = quant_inverse(d);
    for (int j = 0; j < QK4_1 / 2; ++j) {
        const int low = quant_truncate((x[j] - min) * id + 0.5f, 0, 15);
        const int high = quant_truncate((x[j + QK4_1 / 2] - min) * id + 0.5f, 0, 15);
        b->qs[j] = (uint8_t)(low | high << 4);
    }
    b->d = GGML_FP32_TO_FP16(d);
    b->m = GGML_FP32_TO_FP16(min);
}
ENCODE_ROW(q4_1, QK4_1)

// Stores the five bits of element j into cleared fields.
static void put_five_bits(uint8_t *qh, uint8_t *qs, int j, int q) {
    qs[j % 16] |= (uint8_t)((q & 15) << (j < 16 ? 0 : 4));
    qh[j / 8] |= (uint8_t)((q >> 4) << (j % 8));
}

static void encode_block_q5_0(const float *x, block_q5_0 *b) {
    const float d = quant_signed_max(x, QK5_0) / -16.0f;
    const float id = quant_inverse(d);
    memset(b, 0, sizeof(*b));
    for (int j = 0; j < QK5_0; ++j) {
        put_five_bits(b->qh, b->qs, j, quant_truncate(x[j] * id + 16.5f, 0, 31));
    }
    b->d = GGML_FP32_TO_FP16(d);
}
ENCODE_ROW(q5_0, QK5_0)

static void encode_block_q5_1(const float *x, block_q5_1 *b) {
    float min;
    float max;
    find_range(x, QK5_1, &min, &max);
    const float d = (max - min) / 31.0f;
    const float id = quant_inverse(d);
    memset(b, 0, sizeof(*b));
    for (int j = 0; j < QK5_1; ++j) {
        put_five_bits(b->qh, b->qs, j, quant_truncate((x[j] - min) * id + 0.5f, 0, 31));
    }
    b->d = GGML_FP32_TO_FP16(d);
    b->m = GGML_FP32_TO_FP16(min);
}
ENCODE_ROW(q5_1, QK5_1)

// Rounds 32 elements half away from zero; answers the scale and the sum of the quants.
static float encode_8bit(const float *x, int8_t *qs, int *out_sum) {
    const float d = fabsf(quant_signed_max(x, QK8_0)) / 127.0f;
    const float id = quant_inverse(d);
    *out_sum = 0;
    for (int j = 0; j < QK8_0; ++j) {
        const int q = quant_truncate(roundf(x[j] * id), -127, 127);
        qs[j] = (int8_t)q;
        *out_sum += q;
    }
    return d;
}

static void encode_block_q8_0(const float *x, block_q8_0 *b) {
    int sum;
    b->d = GGML_FP32_TO_FP16(encode_8bit(x, b->qs, &sum));
}
ENCODE_ROW(q8_0, QK8_0)

static void encode_block_q8_1(const float *x, block_q8_1 *b) {
    int sum;
    const float d = encode_8bit(x, b->qs, &sum);
    b->d = GGML_FP32_TO_FP16(d);
    b->s = GGML_FP32_TO_FP16((float)sum * d);
}
ENCODE_ROW(q8_1, QK8_1)

// Index of the table's nearest value; the first of equals.
static int nearest_fp4(float x, float d) {
    int best = 0;
    float best_error = fabsf((float)QUANT_FP4[0] * d - x);
    for (int i = 1; i < 16; ++i) {
        const float error = fabsf((float)QUANT_FP4[i] * d - x);
        if (error < best_error) {
            best = i;
            best_error = error;
        }
    }
    return best;
}

static void encode_fp4(const float *x, float d, int half, uint8_t *qs) {
    for (int j = 0; j < half; ++j) {
        qs[j] = (uint8_t)(nearest_fp4(x[j], d) | nearest_fp4(x[j + half], d) << 4);
    }
}

static void encode_block_mxfp4(const float *x, block_mxfp4 *b) {
    const float amax = fabsf(quant_signed_max(x, QK_MXFP4));
    const float exponent = amax > 0.0f ? floorf(log2f(amax)) - 2.0f + 127.0f : 0.0f;
    b->e = (uint8_t)quant_truncate(exponent, 0, 254);
    encode_fp4(x, GGML_E8M0_TO_FP32_HALF(b->e), QK_MXFP4 / 2, b->qs);
}
ENCODE_ROW(mxfp4, QK_MXFP4)

// Unsigned E4M3 byte (bias 7): nearest, halves up, at most 448.
static uint8_t ue4m3_from_float(float x) {
    enum { LARGEST = 0x7E };
    if (!(x > 0.0f)) return 0;
    if (x >= 448.0f) return LARGEST;
    if (x < 0.015625f) { // 2^-6: subnormal
        return (uint8_t)quant_truncate(x * 512.0f + 0.5f, 0, 8);
    }
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const int code = (int)((bits + (1u << 19)) >> 20) - ((127 - 7) << 3);
    return (uint8_t)MIN(code, LARGEST);
}

static void encode_block_nvfp4(const float *x, block_nvfp4 *b) {
    for (int s = 0; s < QK_NVFP4 / QK_NVFP4_SUB; ++s) {
        const float *sub = x + s * QK_NVFP4_SUB;
        b->d[s] = ue4m3_from_float(fabsf(quant_signed_max(sub, QK_NVFP4_SUB)) / 6.0f);
        encode_fp4(sub, quant_ue4m3_half(b->d[s]), QK_NVFP4_SUB / 2, b->qs + s * QK_NVFP4_SUB / 2);
    }
}
ENCODE_ROW(nvfp4, QK_NVFP4)
