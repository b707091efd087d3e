// SPDX-License-Identifier: MIT
// Encoders of the types whose blocks have one scale, or one per 16 elements. Scales are derived in
// F32, elements are rounded with the unrounded scale, and only then is the scale stored in F16.
#include "quant/encode_search.h"
#include "quant/quant_block.h"

// One bit per element, set for x >= 0.
static void put_signs(const float *x, uint8_t *qs) {
    for (int j = 0; j < QK1_0; j += 8) {
        int bits = 0;
        for (int k = 0; k < 8; ++k)
            bits |= (x[j + k] >= 0.0f) << k;
        qs[j / 8] = (uint8_t)bits;
    }
}

// The mean magnitude minimises the squared error of d * sign(x).
static void encode_block_q1_0(const float *x, block_q1_0 *b) {
    float sum = 0.0f;
    for (int j = 0; j < QK1_0; ++j)
        sum += fabsf(x[j]);
    b->d = GGML_FP32_TO_FP16(sum / QK1_0);
    put_signs(x, b->qs);
}
ENCODE_ROW(q1_0, QK1_0)

// The weighted mean of magnitudes, for the same reason.
static void weigh_block_q1_0(const float *x, const float *w, block_q1_0 *b) {
    struct quant_elements e;
    quant_load(x, w, QK1_0, &e);
    float sum = 0.0f;
    float sum_w = 0.0f;
    for (int j = 0; j < QK1_0; ++j) {
        sum += e.w[j] * fabsf(e.x[j]);
        sum_w += e.w[j];
    }
    float d;
    b->d = quant_half_scale(sum / sum_w, &d);
    put_signs(e.x, b->qs);
}
ENCODE_ROW_WEIGHTED(q1_0, QK1_0, weigh_block_q1_0)

// The largest magnitude is d, and quants reach from -1 to 2.
static void encode_block_q2_0(const float *x, block_q2_0 *b) {
    const float d = quant_max_abs(x, QK2_0);
    const float id = quant_inverse(d);
    uint8_t q[QK2_0];
    for (int j = 0; j < QK2_0; ++j)
        q[j] = (uint8_t)(quant_round(x[j] * id, -1, 2) + 1);
    for (int j = 0; j < QK2_0 / 4; ++j)
        quant_pack_pairs(q + 4 * j, 1, b->qs + j);
    b->d = GGML_FP32_TO_FP16(d);
}
ENCODE_ROW(q2_0, QK2_0)

// 32 quants (x - from) * id + shift, truncated and kept in 0 .. high.
static void round_up(const float *x, float from, float id, float shift, int high, uint8_t *q) {
    for (int j = 0; j < 32; ++j)
        q[j] = (uint8_t)quant_truncate((x[j] - from) * id + shift, 0, high);
}

// The element of largest magnitude becomes -8, the level without a counterpart, so that the range
// is used in full.
static void encode_block_q4_0(const float *x, block_q4_0 *b) {
    const float d = quant_signed_max(x, QK4_0) / -8.0f;
    uint8_t q[QK4_0];
    round_up(x, 0.0f, quant_inverse(d), 8.5f, 15, q);
    quant_pack_nibbles(q, QK4_0, b->qs);
    b->d = GGML_FP32_TO_FP16(d);
}
ENCODE_ROW(q4_0, QK4_0)

// Integers in the order of the floats, except that -0 is below 0.
static int32_t order_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits ^ (bits >> 31 & 0x7FFFFFFF);
}

// The inverse of order_of().
static float in_order(int32_t order) {
    order ^= order >> 31 & 0x7FFFFFFF;
    float x;
    memcpy(&x, &order, sizeof(x));
    return x;
}

// Least and largest of 32 elements. What is compared are integers, whose minimum a compiler may
// compute in any order.
static void find_range(const float *x, float *out_min, float *out_max) {
    int32_t min = order_of(x[0]);
    int32_t max = min;
    for (int j = 0; j < 32; ++j) {
        const int32_t order = order_of(x[j]);
        min = MIN(min, order);
        max = MAX(max, order);
    }
    *out_min = in_order(min);
    *out_max = in_order(max);
    // A minimum of 0 takes the sign of the first zero, as comparing floats in order would: the F16
    // that is stored shows it.
    for (int j = 0; *out_min == 0.0f && j < 32; ++j) {
        if (x[j] != 0.0f) continue;
        *out_min = x[j];
        return;
    }
}

// Quants in 0 .. high, scale and minimum of 32 elements.
static void encode_range(const float *x, int high, uint8_t *q, ggml_half *out_d, ggml_half *out_m) {
    float min;
    float max;
    find_range(x, &min, &max);
    const float d = (max - min) / (float)high;
    round_up(x, min, quant_inverse(d), 0.5f, high, q);
    *out_d = GGML_FP32_TO_FP16(d);
    *out_m = GGML_FP32_TO_FP16(min);
}

// d = (max - min) / 15, m = min.
static void encode_block_q4_1(const float *x, block_q4_1 *b) {
    uint8_t q[QK4_1];
    encode_range(x, 15, q, &b->d, &b->m);
    quant_pack_nibbles(q, QK4_1, b->qs);
}
ENCODE_ROW(q4_1, QK4_1)

// As Q4_0 with 32 levels.
static void encode_block_q5_0(const float *x, block_q5_0 *b) {
    const float d = quant_signed_max(x, QK5_0) / -16.0f;
    uint8_t q[QK5_0];
    round_up(x, 0.0f, quant_inverse(d), 16.5f, 31, q);
    quant_pack_nibbles(q, QK5_0, b->qs);
    quant_pack_fifth_bits(q, b->qh);
    b->d = GGML_FP32_TO_FP16(d);
}
ENCODE_ROW(q5_0, QK5_0)

static void encode_block_q5_1(const float *x, block_q5_1 *b) {
    uint8_t q[QK5_1];
    encode_range(x, 31, q, &b->d, &b->m);
    quant_pack_nibbles(q, QK5_1, b->qs);
    quant_pack_fifth_bits(q, b->qh);
}
ENCODE_ROW(q5_1, QK5_1)

// Rounds 32 elements half away from zero; returns the scale and the sum of the quants.
static float encode_8bit(const float *x, int8_t *qs, int *out_sum) {
    const float d = quant_max_abs(x, QK8_0) / 127.0f;
    const float id = quant_inverse(d);
    int sum = 0;
    for (int j = 0; j < QK8_0; ++j) {
        const int q = quant_round(x[j] * id, -127, 127);
        qs[j] = (int8_t)q;
        sum += q;
    }
    *out_sum = sum;
    return d;
}

static void encode_block_q8_0(const float *x, block_q8_0 *b) {
    int sum;
    b->d = GGML_FP32_TO_FP16(encode_8bit(x, b->qs, &sum));
}
ENCODE_ROW(q8_0, QK8_0)

// s is the sum of the decoded values, with which products add the minimum of a block at once.
static void encode_block_q8_1(const float *x, block_q8_1 *b) {
    int sum;
    const float d = encode_8bit(x, b->qs, &sum);
    b->d = GGML_FP32_TO_FP16(d);
    b->s = GGML_FP32_TO_FP16((float)sum * d);
}
ENCODE_ROW(q8_1, QK8_1)

// Encodes 2 * half elements: each gets the index of the table's nearest value, the first of equals.
// As the values rise, the error falls up to the nearest one, so that counting how often it falls
// finds it.
static void encode_fp4(const float *x, float d, int half, uint8_t *qs) {
    uint8_t q[QK_MXFP4];
    for (int j = 0; j < 2 * half; ++j) {
        const float magnitude = fabsf(x[j]);
        int index = 0;
#pragma GCC unroll 8
        for (int i = 1; i < 8; ++i) {
            index += fabsf((float)QUANT_FP4[i] * d - magnitude) <
                     fabsf((float)QUANT_FP4[i - 1] * d - magnitude);
        }
        q[j] = (uint8_t)(index | ((x[j] < 0.0f) & (index > 0)) << 3);
    }
    quant_pack_nibbles(q, 2 * half, qs);
}

// Exponent of the largest magnitude, less 2, as E2M1 reaches 6 = 1.5 * 2^2; biased by 127.
static uint8_t mxfp4_code(const float *x) {
    const float amax = quant_max_abs(x, QK_MXFP4);
    const float exponent = amax > 0.0f ? floorf(log2f(amax)) - 2.0f + 127.0f : 0.0f;
    return (uint8_t)quant_truncate(exponent, 0, 254);
}

static void encode_block_mxfp4(const float *x, block_mxfp4 *b) {
    b->e = mxfp4_code(x);
    encode_fp4(x, GGML_E8M0_TO_FP32_HALF(b->e), QK_MXFP4 / 2, b->qs);
}
ENCODE_ROW(mxfp4, QK_MXFP4)

static float mxfp4_scale(uint8_t code) {
    return GGML_E8M0_TO_FP32_HALF(code);
}

// Of the n_codes codes from `first` on the one whose scale leaves the least weighted error.
static uint8_t search_code(const struct quant_group *g, int first, int n_codes,
                           float (*scale_of)(uint8_t code)) {
    static const struct quant_levels levels = {.set = &quant_fp4};
    float scale[QUANT_TRIALS];
    for (int k = 0; k < n_codes; ++k)
        scale[k] = scale_of((uint8_t)(first + k));
    return (uint8_t)(first + quant_best_scale(&levels, g, scale, n_codes));
}

// Around the exponent of the reference: the largest element may be clipped where that leaves less
// error in the others.
static void weigh_block_mxfp4(const float *x, const float *w, block_mxfp4 *b) {
    struct quant_elements e;
    const struct quant_group g = {QK_MXFP4, e.x, e.w};
    quant_load(x, w, QK_MXFP4, &e);
    b->e = search_code(&g, MAX(mxfp4_code(e.x) - 2, 0), 4, mxfp4_scale);
    encode_fp4(e.x, mxfp4_scale(b->e), QK_MXFP4 / 2, b->qs);
}
ENCODE_ROW_WEIGHTED(mxfp4, QK_MXFP4, weigh_block_mxfp4)

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

// The scale that maps the largest magnitude to 6, the largest value.
static uint8_t nvfp4_code(const float *x) {
    return ue4m3_from_float(quant_max_abs(x, QK_NVFP4_SUB) / 6.0f);
}

static void encode_block_nvfp4(const float *x, block_nvfp4 *b) {
    for (int s = 0; s < QK_NVFP4 / QK_NVFP4_SUB; ++s) {
        const float *sub = x + s * QK_NVFP4_SUB;
        b->d[s] = nvfp4_code(sub);
        encode_fp4(sub, quant_ue4m3_half(b->d[s]), QK_NVFP4_SUB / 2, b->qs + s * QK_NVFP4_SUB / 2);
    }
}
ENCODE_ROW(nvfp4, QK_NVFP4)

static float nvfp4_scale(uint8_t code) {
    return quant_ue4m3_half(code);
}

// Twelve codes around the reference's, at most the largest finite one.
static void weigh_block_nvfp4(const float *x, const float *w, block_nvfp4 *b) {
    struct quant_elements e;
    quant_load(x, w, QK_NVFP4, &e);
    for (int s = 0; s < QK_NVFP4 / QK_NVFP4_SUB; ++s) {
        const int at = s * QK_NVFP4_SUB;
        const struct quant_group g = {QK_NVFP4_SUB, e.x + at, e.w + at};
        // The range of codes is moved down where it would reach beyond 0x7E.
        const int first = MIN(MAX(nvfp4_code(g.x) - 6, 0), 0x7E - 11);
        b->d[s] = search_code(&g, first, 12, nvfp4_scale);
        encode_fp4(g.x, nvfp4_scale(b->d[s]), QK_NVFP4_SUB / 2, b->qs + at / 2);
    }
}
ENCODE_ROW_WEIGHTED(nvfp4, QK_NVFP4, weigh_block_nvfp4)
