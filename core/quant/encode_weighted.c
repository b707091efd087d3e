// SPDX-License-Identifier: MIT
// Encoders of the small blocks for elements of unequal importance: scales by weighted least
// squares.
#include "quant/encode_search.h"
#include "quant/quant_block.h"

static void weigh_block_q1_0(const float *x, const float *w, block_q1_0 *b) {
    float sum = 0.0f;
    float sum_w = 0.0f;
    memset(b, 0, sizeof(*b));
    for (int j = 0; j < QK1_0; ++j) {
        sum += w[j] * fabsf(x[j]);
        sum_w += w[j];
        if (x[j] >= 0.0f) b->qs[j / 8] |= (uint8_t)(1u << (j % 8));
    }
    b->d = GGML_FP32_TO_FP16(sum * quant_inverse(sum_w));
}
ENCODE_ROW_WEIGHTED(q1_0, QK1_0, weigh_block_q1_0)

static void weigh_block_q2_0(const float *x, const float *w, block_q2_0 *b) {
    static const struct quant_level_search search = {QK2_0, -1, 2, 0.8f, 0.1f, 40};
    int8_t q[QK2_0];
    memset(b, 0, sizeof(*b));
    b->d = GGML_FP32_TO_FP16(quant_search_levels(&search, x, w, q));
    for (int j = 0; j < QK2_0; ++j)
        b->qs[j / 4] |= (uint8_t)((q[j] + 1) << (2 * (j % 4)));
}
ENCODE_ROW_WEIGHTED(q2_0, QK2_0, weigh_block_q2_0)

static void weigh_block_q4_0(const float *x, const float *w, block_q4_0 *b) {
    static const struct quant_level_search search = {QK4_0, -8, 7, 6.0f, 0.1f, 40};
    int8_t q[QK4_0];
    b->d = GGML_FP32_TO_FP16(quant_search_levels(&search, x, w, q));
    for (int j = 0; j < QK4_0 / 2; ++j)
        b->qs[j] = (uint8_t)((q[j] + 8) | (q[j + QK4_0 / 2] + 8) << 4);
}
ENCODE_ROW_WEIGHTED(q4_0, QK4_0, weigh_block_q4_0)

// Quants in 0 .. n_max, scale and minimum of 32 elements.
static void weigh_range(const float *x, const float *w, int n_max, uint8_t *q, ggml_half *out_d,
                        ggml_half *out_m) {
    const struct quant_range_search search = {32, n_max, -2.0f, 30, false, true};
    float min;
    const float d = quant_search_range(&search, x, w, q, &min);
    *out_d = GGML_FP32_TO_FP16(d);
    *out_m = GGML_FP32_TO_FP16(-min);
}

static void weigh_block_q4_1(const float *x, const float *w, block_q4_1 *b) {
    uint8_t q[QK4_1];
    weigh_range(x, w, 15, q, &b->d, &b->m);
    for (int j = 0; j < QK4_1 / 2; ++j)
        b->qs[j] = (uint8_t)(q[j] | q[j + QK4_1 / 2] << 4);
}
ENCODE_ROW_WEIGHTED(q4_1, QK4_1, weigh_block_q4_1)

// Stores the five bits of element j into cleared fields.
static void put_five_bits(uint8_t *qh, uint8_t *qs, int j, int q) {
    qs[j % 16] |= (uint8_t)((q & 15) << (j < 16 ? 0 : 4));
    qh[j / 8] |= (uint8_t)((q >> 4) << (j % 8));
}

static void weigh_block_q5_0(const float *x, const float *w, block_q5_0 *b) {
    static const struct quant_level_search search = {QK5_0, -16, 15, 14.0f, 0.1f, 40};
    int8_t q[QK5_0];
    memset(b, 0, sizeof(*b));
    b->d = GGML_FP32_TO_FP16(quant_search_levels(&search, x, w, q));
    for (int j = 0; j < QK5_0; ++j)
        put_five_bits(b->qh, b->qs, j, q[j] + 16);
}
ENCODE_ROW_WEIGHTED(q5_0, QK5_0, weigh_block_q5_0)

static void weigh_block_q5_1(const float *x, const float *w, block_q5_1 *b) {
    uint8_t q[QK5_1];
    memset(b, 0, sizeof(*b));
    weigh_range(x, w, 31, q, &b->d, &b->m);
    for (int j = 0; j < QK5_1; ++j)
        put_five_bits(b->qh, b->qs, j, q[j]);
}
ENCODE_ROW_WEIGHTED(q5_1, QK5_1, weigh_block_q5_1)

// --- four-bit floats -----------------------------------------------------------------------------

static int nearest_fp4(float x, float d) {
    int best = 0;
    for (int i = 1; i < 16; ++i) {
        if (fabsf((float)QUANT_FP4[i] * d - x) < fabsf((float)QUANT_FP4[best] * d - x)) best = i;
    }
    return best;
}

static float fp4_error(const float *x, const float *w, int n, float d) {
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) {
        const float diff = (float)QUANT_FP4[nearest_fp4(x[i], d)] * d - x[i];
        sum += w[i] * diff * diff;
    }
    return sum;
}

static void put_fp4(const float *x, float d, int half, uint8_t *qs) {
    for (int j = 0; j < half; ++j) {
        qs[j] = (uint8_t)(nearest_fp4(x[j], d) | nearest_fp4(x[j + half], d) << 4);
    }
}

// The scale code near `start` with the least error.
static uint8_t search_code(const float *x, const float *w, int n, int start, int reach, int last,
                           float (*scale_of)(uint8_t code)) {
    int best = start;
    float best_error = fp4_error(x, w, n, scale_of((uint8_t)start));
    for (int code = MAX(start - reach, 0); code <= MIN(start + reach, last); ++code) {
        const float error = fp4_error(x, w, n, scale_of((uint8_t)code));
        if (error < best_error) {
            best = code;
            best_error = error;
        }
    }
    return (uint8_t)best;
}

static float e8m0_scale(uint8_t code) {
    return GGML_E8M0_TO_FP32_HALF(code);
}

static float ue4m3_scale(uint8_t code) {
    return quant_ue4m3_half(code);
}

static void weigh_block_mxfp4(const float *x, const float *w, block_mxfp4 *b) {
    quantize_row_mxfp4_ref(x, b, QK_MXFP4);
    b->e = search_code(x, w, QK_MXFP4, b->e, 1, 254, e8m0_scale);
    put_fp4(x, e8m0_scale(b->e), QK_MXFP4 / 2, b->qs);
}
ENCODE_ROW_WEIGHTED(mxfp4, QK_MXFP4, weigh_block_mxfp4)

static void weigh_block_nvfp4(const float *x, const float *w, block_nvfp4 *b) {
    quantize_row_nvfp4_ref(x, b, QK_NVFP4);
    for (int s = 0; s < QK_NVFP4 / QK_NVFP4_SUB; ++s) {
        const int at = s * QK_NVFP4_SUB;
        b->d[s] = search_code(x + at, w + at, QK_NVFP4_SUB, b->d[s], 4, 0x7E, ue4m3_scale);
        put_fp4(x + at, ue4m3_scale(b->d[s]), QK_NVFP4_SUB / 2, b->qs + at / 2);
    }
}
ENCODE_ROW_WEIGHTED(nvfp4, QK_NVFP4, weigh_block_nvfp4)

// --- ternary -------------------------------------------------------------------------------------

static const struct quant_level_search ternary_search = {QK_K, -1, 1, 0.8f, 0.1f, 40};

// The reference packs what has the largest magnitude 1.
static ggml_half search_trits(const float *x, const float *w, float *out_trits) {
    int8_t q[QK_K];
    const float d = quant_search_levels(&ternary_search, x, w, q);
    for (int i = 0; i < QK_K; ++i)
        out_trits[i] = q[i];
    return GGML_FP32_TO_FP16(d);
}

static void weigh_block_tq1_0(const float *x, const float *w, block_tq1_0 *b) {
    float trits[QK_K];
    const ggml_half d = search_trits(x, w, trits);
    quantize_row_tq1_0_ref(trits, b, QK_K);
    b->d = d;
}
ENCODE_ROW_WEIGHTED(tq1_0, QK_K, weigh_block_tq1_0)

static void weigh_block_tq2_0(const float *x, const float *w, block_tq2_0 *b) {
    float trits[QK_K];
    const ggml_half d = search_trits(x, w, trits);
    quantize_row_tq2_0_ref(trits, b, QK_K);
    b->d = d;
}
ENCODE_ROW_WEIGHTED(tq2_0, QK_K, weigh_block_tq2_0)
