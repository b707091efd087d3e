// SPDX-License-Identifier: MIT
// Encoders of the 256-element blocks. Scale and minimum of each group are searched by weighted
// least squares over a grid of trial scales; the groups' scales are then rounded against the
// block's largest, and the elements encoded again with the rounded ones. w holds an importance per
// element, or is NULL: then the reference weights count.
#include "quant/encode_search.h"
#include "quant/quant_block.h"

enum { HALF = QK_K / 2, GROUPS_16 = QK_K / 16, GROUPS_32 = QK_K / 32 };

static const float TINY = 1e-15f;

static float largest(const float *x, int n) {
    float max = 0.0f;
    for (int i = 0; i < n; ++i)
        max = MAX(max, x[i]);
    return max;
}

// Encodes n elements again for value = d * q - m; with d == 0 the quants stay.
static void requantise_range(const float *x, int n, float d, float m, int n_max, uint8_t *q) {
    if (d == 0.0f) return;
    for (int i = 0; i < n; ++i)
        q[i] = (uint8_t)quant_nearest((x[i] + m) / d, 0, n_max);
}

static void encode_block_q2_K(const float *x, const float *w, block_q2_K *b) {
    static const struct quant_range_search reference = {16, 3, -0.5f, 15, true, false};
    static const struct quant_range_search weighted = {16, 3, -0.9f, 18, false, false};
    uint8_t q[QK_K];
    float scales[GROUPS_16];
    float mins[GROUPS_16];
    for (int g = 0; g < GROUPS_16; ++g) {
        float own[16];
        for (int i = 0; i < 16; ++i)
            own[i] = w ? w[16 * g + i] : fabsf(x[16 * g + i]);
        scales[g] =
            quant_search_range(w ? &weighted : &reference, x + 16 * g, own, q + 16 * g, &mins[g]);
    }
    const float max_scale = largest(scales, GROUPS_16);
    const float max_min = largest(mins, GROUPS_16);
    const float iscale = max_scale > 0.0f ? 15.0f / max_scale : 0.0f;
    const float imin = max_min > 0.0f ? 15.0f / max_min : 0.0f;
    b->d = GGML_FP32_TO_FP16(max_scale / 15.0f);
    b->dmin = GGML_FP32_TO_FP16(max_min / 15.0f);
    for (int g = 0; g < GROUPS_16; ++g) {
        const int scale = quant_nearest(iscale * scales[g], 0, 15);
        const int min = quant_nearest(imin * mins[g], 0, 15);
        b->scales[g] = (uint8_t)(scale | min << 4);
        requantise_range(x + 16 * g, 16, GGML_FP16_TO_FP32(b->d) * (float)scale,
                         GGML_FP16_TO_FP32(b->dmin) * (float)min, 3, q + 16 * g);
    }
    memset(b->qs, 0, sizeof(b->qs));
    for (int i = 0; i < QK_K; ++i) {
        b->qs[32 * (i / HALF) + i % 32] |= (uint8_t)(q[i] << (2 * (i % HALF / 32)));
    }
}
ENCODE_ROW_BOTH(q2_K, QK_K)

// Q4_K and Q5_K: quants, six-bit scales and minima, and what they are multiplied with.
static void encode_six_bit_groups(const struct quant_range_search *search, const float *x,
                                  const float *w, uint8_t *q, uint8_t *packed, ggml_half *out_d,
                                  ggml_half *out_dmin) {
    float scales[GROUPS_32];
    float mins[GROUPS_32];
    for (int g = 0; g < GROUPS_32; ++g) {
        const float *group = x + 32 * g;
        float own[32];
        float sum = 0.0f;
        for (int i = 0; i < 32; ++i)
            sum += group[i] * group[i];
        const float rms = sqrtf(sum / 32.0f);
        for (int i = 0; i < 32; ++i)
            own[i] = w ? w[32 * g + i] : rms + fabsf(group[i]);
        scales[g] = quant_search_range(search, group, own, q + 32 * g, &mins[g]);
    }
    const float max_scale = largest(scales, GROUPS_32);
    const float max_min = largest(mins, GROUPS_32);
    const float iscale = max_scale > 0.0f ? 63.0f / max_scale : 0.0f;
    const float imin = max_min > 0.0f ? 63.0f / max_min : 0.0f;
    *out_d = GGML_FP32_TO_FP16(max_scale / 63.0f);
    *out_dmin = GGML_FP32_TO_FP16(max_min / 63.0f);
    memset(packed, 0, K_SCALE_SIZE);
    for (int g = 0; g < GROUPS_32; ++g) {
        const int scale = quant_nearest(iscale * scales[g], 0, 63);
        const int min = quant_nearest(imin * mins[g], 0, 63);
        if (g < 4) {
            packed[g] |= (uint8_t)scale;
            packed[g + 4] |= (uint8_t)min;
        } else {
            packed[g + 4] = (uint8_t)((scale & 15) | (min & 15) << 4);
            packed[g - 4] |= (uint8_t)((scale >> 4) << 6);
            packed[g] |= (uint8_t)((min >> 4) << 6);
        }
        requantise_range(x + 32 * g, 32, GGML_FP16_TO_FP32(*out_d) * (float)scale,
                         GGML_FP16_TO_FP32(*out_dmin) * (float)min, search->n_max, q + 32 * g);
    }
}

static void encode_block_q4_K(const float *x, const float *w, block_q4_K *b) {
    static const struct quant_range_search search = {32, 15, -1.0f, 20, false, false};
    uint8_t q[QK_K];
    encode_six_bit_groups(&search, x, w, q, b->scales, &b->d, &b->dmin);
    for (int i = 0; i < HALF; ++i) {
        const uint8_t *chunk = q + 64 * (i / 32) + i % 32;
        b->qs[i] = (uint8_t)(chunk[0] | chunk[32] << 4);
    }
}
ENCODE_ROW_BOTH(q4_K, QK_K)

static void encode_block_q5_K(const float *x, const float *w, block_q5_K *b) {
    static const struct quant_range_search search = {32, 31, -0.5f, 15, false, false};
    uint8_t q[QK_K];
    encode_six_bit_groups(&search, x, w, q, b->scales, &b->d, &b->dmin);
    memset(b->qh, 0, sizeof(b->qh));
    for (int i = 0; i < QK_K; ++i)
        b->qh[i % 32] |= (uint8_t)((q[i] >> 4) << (i / 32));
    for (int i = 0; i < HALF; ++i) {
        const uint8_t *chunk = q + 64 * (i / 32) + i % 32;
        b->qs[i] = (uint8_t)((chunk[0] & 15) | (chunk[32] & 15) << 4);
    }
}
ENCODE_ROW_BOTH(q5_K, QK_K)

// Three-bit quants of 16 elements, refined one element at a time; answers the scale.
static float refine_q3(const float *x, const float *importance, int8_t *q) {
    const float max = quant_signed_max(x, 16);
    memset(q, 0, 16);
    if (fabsf(max) < TINY) return 0.0f;
    const float iscale = -4.0f / max;
    float sum_xl = 0.0f;
    float sum_l2 = 0.0f;
    for (int i = 0; i < 16; ++i) {
        const int l = quant_nearest(iscale * x[i], -4, 3);
        const float w = importance ? importance[i] : x[i] * x[i];
        q[i] = (int8_t)l;
        sum_xl += w * x[i] * (float)l;
        sum_l2 += w * (float)(l * l);
    }
    bool changed = true;
    for (int pass = 0; pass < 5 && changed; ++pass) {
        changed = false;
        for (int i = 0; i < 16; ++i) {
            const float w = importance ? importance[i] : x[i] * x[i];
            float xl = sum_xl - w * x[i] * (float)q[i];
            float l2 = sum_l2 - w * (float)(q[i] * q[i]);
            if (!(xl > 0.0f)) continue;
            const int l = quant_nearest(x[i] * l2 / xl, -4, 3);
            if (l == q[i]) continue;
            xl += w * x[i] * (float)l;
            l2 += w * (float)(l * l);
            if (l2 > 0.0f && xl * xl * sum_l2 > sum_xl * sum_xl * l2) {
                q[i] = (int8_t)l;
                sum_xl = xl;
                sum_l2 = l2;
                changed = true;
            }
        }
    }
    return sum_l2 > 0.0f ? sum_xl / sum_l2 : 0.0f;
}

static void pack_q3_scale(uint8_t *scales, int g, int scale) {
    scales[g % 8] |= (uint8_t)((scale & 15) << (g < 8 ? 0 : 4));
    scales[8 + g % 4] |= (uint8_t)((scale >> 4) << (2 * (g / 4)));
}

static void encode_block_q3_K(const float *x, const float *w, block_q3_K *b) {
    int8_t q[QK_K];
    float scales[GROUPS_16];
    for (int g = 0; g < GROUPS_16; ++g)
        scales[g] = refine_q3(x + 16 * g, w ? w + 16 * g : NULL, q + 16 * g);
    const float max = quant_signed_max(scales, GROUPS_16);
    const float iscale = max != 0.0f ? -32.0f / max : 0.0f;
    memset(b, 0, sizeof(*b));
    b->d = GGML_FP32_TO_FP16(quant_inverse(iscale));
    for (int g = 0; g < GROUPS_16; ++g) {
        const int scale = max != 0.0f ? quant_nearest(iscale * scales[g], -32, 31) : -32;
        if (max != 0.0f) pack_q3_scale(b->scales, g, scale + 32);
        const float d = GGML_FP16_TO_FP32(b->d) * (float)scale;
        if (d == 0.0f) continue;
        for (int i = 16 * g; i < 16 * (g + 1); ++i)
            q[i] = (int8_t)quant_nearest(x[i] / d, -4, 3);
    }
    for (int i = 0; i < QK_K; ++i) {
        const int l = q[i] + 4;
        b->hmask[i % 32] |= (uint8_t)((l >> 2) << (i / 32));
        b->qs[32 * (i / HALF) + i % 32] |= (uint8_t)((l & 3) << (2 * (i % HALF / 32)));
    }
}
ENCODE_ROW_BOTH(q3_K, QK_K)

// Weighted products for quants at a trial scale.
static void sum_q6(const float *x, const float *importance, float iscale, float *out_xl,
                   float *out_l2) {
    *out_xl = 0.0f;
    *out_l2 = 0.0f;
    for (int i = 0; i < 16; ++i) {
        const float l = (float)quant_nearest(iscale * x[i], -32, 31);
        const float w = importance ? importance[i] : x[i] * x[i];
        *out_xl += w * x[i] * l;
        *out_l2 += w * l * l;
    }
}

// Best scale of 16 elements for six-bit quants; *out_iscale reproduces the quants it was fitted to.
static float search_q6(const float *x, const float *importance, float *out_iscale) {
    const float max = quant_signed_max(x, 16);
    *out_iscale = 0.0f;
    if (fabsf(max) < TINY) return 0.0f;
    float xl;
    float l2;
    *out_iscale = -32.0f / max;
    sum_q6(x, importance, *out_iscale, &xl, &l2);
    float scale = l2 != 0.0f ? xl / l2 : 0.0f;
    float best = scale * xl;
    for (int k = -9; k <= 9; ++k) {
        if (k == 0) continue;
        const float iscale = -(32.0f + 0.1f * (float)k) / max;
        sum_q6(x, importance, iscale, &xl, &l2);
        if (l2 > 0.0f && xl * xl > best * l2) {
            scale = xl / l2;
            best = scale * xl;
            *out_iscale = iscale;
        }
    }
    return scale;
}

static void put_q6(block_q6_K *b, int i, int q) {
    const int half = i / HALF;
    const int quarter = i % HALF / 32;
    b->ql[64 * half + 32 * (quarter % 2) + i % 32] |= (uint8_t)((q & 15) << (4 * (quarter / 2)));
    b->qh[32 * half + i % 32] |= (uint8_t)((q >> 4) << (2 * quarter));
}

static void encode_block_q6_K(const float *x, const float *w, block_q6_K *b) {
    float scales[GROUPS_16];
    float iscales[GROUPS_16];
    for (int g = 0; g < GROUPS_16; ++g)
        scales[g] = search_q6(x + 16 * g, w ? w + 16 * g : NULL, &iscales[g]);
    const float max = quant_signed_max(scales, GROUPS_16);
    memset(b, 0, sizeof(*b));
    if (fabsf(max) < TINY) return;
    const float iscale = -128.0f / max;
    b->d = GGML_FP32_TO_FP16(1.0f / iscale);
    for (int g = 0; g < GROUPS_16; ++g) {
        b->scales[g] = (int8_t)quant_nearest(iscale * scales[g], -128, 127);
        const float d = GGML_FP16_TO_FP32(b->d) * (float)b->scales[g];
        for (int i = 16 * g; i < 16 * (g + 1); ++i) {
            const float scaled = d != 0.0f ? x[i] / d : iscales[g] * x[i];
            put_q6(b, i, quant_nearest(scaled, -32, 31) + 32);
        }
    }
}
ENCODE_ROW_BOTH(q6_K, QK_K)

static void encode_block_q8_K(const float *x, block_q8_K *b) {
    const float max = quant_signed_max(x, QK_K);
    memset(b, 0, sizeof(*b));
    if (max == 0.0f) return;
    const float iscale = -127.0f / max;
    for (int i = 0; i < QK_K; ++i) {
        b->qs[i] = (int8_t)quant_nearest(iscale * x[i], -127, 127);
        b->bsums[i / 16] = (int16_t)(b->bsums[i / 16] + b->qs[i]);
    }
    b->d = 1.0f / iscale;
}
ENCODE_ROW(q8_K, QK_K)
