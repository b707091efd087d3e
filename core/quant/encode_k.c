// SPDX-License-Identifier: MIT
// Encoders of the 256-element blocks. Q2_K, Q4_K and Q5_K take the scales and minima that
// quant_encode_ranges() finds. Q3_K and Q6_K without importance have the bytes that others make of
// them: scales by least squares, the squares of the elements being the weights, rounded against the
// block's largest; with importance, the scales that quant_encode_levels() finds. w holds an
// importance per element, or is NULL.
#include "quant/block_q8_k.h"
#include "quant/encode_search.h"
#include "quant/quant_block.h"

enum { HALF = QK_K / 2, GROUPS_16 = QK_K / 16, GROUPS_32 = QK_K / 32, Q6_TRIALS = 20 };

static const float TINY = 1e-15f;

// 16 groups of 16: four bits each for scale and minimum, two bits per quant.
static void encode_block_q2_K(const float *x, const float *w, block_q2_K *b) {
    static const struct quant_range_format format = {16, 3, 15};
    struct quant_elements e;
    struct quant_range_block found;
    quant_load(x, w, QK_K, &e);
    quant_encode_ranges(&format, &e, &found);
    b->d = found.d;
    b->dmin = found.dmin;
    for (int g = 0; g < GROUPS_16; ++g)
        b->scales[g] = (uint8_t)(found.scales[g] | found.mins[g] << 4);
    quant_pack_pairs(found.q, 32, b->qs);
    quant_pack_pairs(found.q + HALF, 32, b->qs + 32);
}
ENCODE_ROW_BOTH(q2_K, QK_K)

// Q4_K and Q5_K: six-bit scales and minima.
static void pack_six_bits(const struct quant_range_block *found, uint8_t *packed) {
    memset(packed, 0, K_SCALE_SIZE);
    for (int g = 0; g < GROUPS_32; ++g) {
        const int scale = found->scales[g];
        const int min = found->mins[g];
        if (g < 4) {
            packed[g] |= (uint8_t)scale;
            packed[g + 4] |= (uint8_t)min;
        } else {
            packed[g + 4] = (uint8_t)((scale & 15) | (min & 15) << 4);
            packed[g - 4] |= (uint8_t)((scale >> 4) << 6);
            packed[g] |= (uint8_t)((min >> 4) << 6);
        }
    }
}

// All of a block but the fifth bits of the quants, which are in `found`.
static void encode_six_bits(const float *x, const float *w, int top,
                            struct quant_range_block *found, ggml_half *d, ggml_half *dmin,
                            uint8_t *scales, uint8_t *qs) {
    const struct quant_range_format format = {32, top, 63};
    struct quant_elements e;
    quant_load(x, w, QK_K, &e);
    quant_encode_ranges(&format, &e, found);
    *d = found->d;
    *dmin = found->dmin;
    pack_six_bits(found, scales);
    for (int i = 0; i < QK_K; i += 64)
        quant_pack_nibbles(found->q + i, 64, qs + i / 2);
}

// 8 groups of 32, four bits per quant.
static void encode_block_q4_K(const float *x, const float *w, block_q4_K *b) {
    struct quant_range_block found;
    encode_six_bits(x, w, 15, &found, &b->d, &b->dmin, b->scales, b->qs);
}
ENCODE_ROW_BOTH(q4_K, QK_K)

// As Q4_K; the fifth bits are in qh, one bit of a byte per group of 32.
static void encode_block_q5_K(const float *x, const float *w, block_q5_K *b) {
    struct quant_range_block found;
    encode_six_bits(x, w, 31, &found, &b->d, &b->dmin, b->scales, b->qs);
    memset(b->qh, 0, sizeof(b->qh));
    for (int i = 0; i < QK_K; ++i)
        b->qh[i % 32] |= (uint8_t)((found.q[i] >> 4) << (i / 32));
}
ENCODE_ROW_BOTH(q5_K, QK_K)

// Quants -4 .. 3 of 16 elements, refined one element at a time; returns the scale.
// Coordinate descent: each pass moves every element to the quant that is best with the others
// fixed, and keeps it if sum_xl^2 / sum_l2, the part of the error that the quants remove, grows.
static float refine_q3(const float *x, int8_t *q) {
    const float max = quant_signed_max(x, 16);
    memset(q, -4, 16);
    if (fabsf(max) < TINY) return 0.0f;
    const float iscale = -4.0f / max;
    float sum_xl = 0.0f;
    float sum_l2 = 0.0f;
    for (int i = 0; i < 16; ++i) {
        // The quants start from the largest magnitude at -4.
        const int l = quant_nearest(iscale * x[i], -4, 3);
        const float w = x[i] * x[i];
        q[i] = (int8_t)l;
        sum_xl += w * x[i] * (float)l;
        sum_l2 += w * (float)(l * l);
    }
    bool changed = true;
    for (int pass = 0; pass < 5 && changed; ++pass) {
        changed = false;
        for (int i = 0; i < 16; ++i) {
            const float w = x[i] * x[i];
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

// Adds the six-bit scale of group g to 12 bytes: low four bits in the first 8 bytes, two groups
// in each, the high two bits in the last 4, four groups in each.
static void pack_q3_scale(uint8_t *scales, int g, int scale) {
    scales[g % 8] |= (uint8_t)((scale & 15) << (g < 8 ? 0 : 4));
    scales[8 + g % 4] |= (uint8_t)((scale >> 4) << (2 * (g / 4)));
}

// Packs quants -4 .. 3: two bits in qs, the third as its inverse in hmask, set for what is not
// negative.
static void pack_q3(const int8_t *q, block_q3_K *b) {
    uint8_t low[QK_K];
    memset(b->hmask, 0, sizeof(b->hmask));
    for (int i = 0; i < QK_K; ++i) {
        low[i] = q[i] & 3;
        b->hmask[i % 32] |= (uint8_t)((q[i] >= 0) << (i / 32));
    }
    quant_pack_pairs(low, 32, b->qs);
    quant_pack_pairs(low + HALF, 32, b->qs + 32);
}

// Scales of groups are rounded to six bits first; quants are then chosen again for the rounded
// ones.
static void encode_block_q3_K(const float *x, block_q3_K *b) {
    int8_t q[QK_K];
    float scales[GROUPS_16];
    for (int g = 0; g < GROUPS_16; ++g)
        scales[g] = refine_q3(x + 16 * g, q + 16 * g);
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
    pack_q3(q, b);
}
ENCODE_ROW(q3_K, QK_K)

// With importance both scales and quants come from the weighted search; quants are rounded against
// the stored scales.
static void weigh_block_q3_K(const float *x, const float *w, block_q3_K *b) {
    static const struct quant_level_format format = {
        16, -32, 31, {&quant_whole, -4.0f, 3.0f, -4.9f, 0.909f, 1}};
    struct quant_elements e;
    int8_t scales[GROUPS_16];
    int8_t q[QK_K];
    float d;
    quant_load(x, w, QK_K, &e);
    memset(b->scales, 0, sizeof(b->scales));
    b->d = quant_encode_levels(&format, &e, scales, &d);
    for (int g = 0; g < GROUPS_16; ++g) {
        const float inverse = quant_inverse(d * (float)scales[g]);
        pack_q3_scale(b->scales, g, scales[g] + 32);
        for (int i = 16 * g; i < 16 * (g + 1); ++i)
            q[i] = (int8_t)quant_nearest(e.x[i] * inverse, -4, 3);
    }
    pack_q3(q, b);
}
ENCODE_ROW_WEIGHTED(q3_K, QK_K, weigh_block_q3_K)

// Products with the quants at each of the 16 elements' trial scales; their squares are the weights.
static void sum_q6(const float *restrict x, const float *restrict iscale, float *restrict xl,
                   float *restrict l2) {
    for (int k = 0; k < Q6_TRIALS; ++k) {
        float sum_xl = 0.0f;
        float sum_l2 = 0.0f;
        for (int i = 0; i < 16; ++i) {
            int l = quant_nearest_small(iscale[k] * x[i]);
            l = l > 31 ? 31 : l; // Assigned one after the other, or else GCC branches.
            l = l < -32 ? -32 : l;
            const float w = x[i] * x[i];
            sum_xl += w * x[i] * (float)l;
            sum_l2 += w * (float)l * (float)l;
        }
        xl[k] = sum_xl;
        l2[k] = sum_l2;
    }
}

// Best scale of 16 elements for six-bit quants; *out_iscale reproduces the quants it was fitted to.
static float search_q6(const float *x, float *out_iscale) {
    const float max = quant_signed_max(x, 16);
    *out_iscale = 0.0f;
    if (fabsf(max) < TINY) return 0.0f;
    float iscale[Q6_TRIALS];
    float xl[Q6_TRIALS];
    float l2[Q6_TRIALS];
    for (int k = 0; k < Q6_TRIALS; ++k)
        iscale[k] = -(32.0f + 0.1f * (float)(k - Q6_TRIALS / 2)) / max;
    sum_q6(x, iscale, xl, l2);
    // What brings the largest magnitude to -32 comes first, then the others in their order.
    int best = Q6_TRIALS / 2;
    float scale = l2[best] != 0.0f ? xl[best] / l2[best] : 0.0f;
    float gain = scale * xl[best];
    for (int k = 1; k < Q6_TRIALS; ++k) {
        if (!(l2[k] > 0.0f && xl[k] * xl[k] > gain * l2[k])) continue;
        best = k;
        scale = xl[k] / l2[k];
        gain = scale * xl[k];
    }
    *out_iscale = iscale[best];
    return scale;
}

// Splits six bits into nibbles (ql) and pairs of bits (qh), each half of the block by itself.
static void pack_q6(const uint8_t *q, block_q6_K *b) {
    uint8_t high[QK_K];
    for (int i = 0; i < QK_K; ++i)
        high[i] = q[i] >> 4;
    for (int half = 0; half < 2; ++half) {
        quant_pack_nibbles(q + HALF * half, HALF, b->ql + 64 * half);
        quant_pack_pairs(high + HALF * half, 32, b->qh + 32 * half);
    }
}

// Scales of groups are rounded to eight bits; a group whose rounded scale is 0 keeps the quants
// of its own scale. A block of zeros stays zero.
static void encode_block_q6_K(const float *x, block_q6_K *b) {
    float scales[GROUPS_16];
    float iscales[GROUPS_16];
    for (int g = 0; g < GROUPS_16; ++g)
        scales[g] = search_q6(x + 16 * g, &iscales[g]);
    const float max = quant_signed_max(scales, GROUPS_16);
    memset(b, 0, sizeof(*b));
    if (fabsf(max) < TINY) return;
    const float iscale = -128.0f / max;
    uint8_t q[QK_K];
    b->d = GGML_FP32_TO_FP16(1.0f / iscale);
    for (int g = 0; g < GROUPS_16; ++g) {
        b->scales[g] = (int8_t)quant_nearest(iscale * scales[g], -128, 127);
        const float d = GGML_FP16_TO_FP32(b->d) * (float)b->scales[g];
        for (int i = 16 * g; i < 16 * (g + 1); ++i) {
            const float scaled = d != 0.0f ? x[i] / d : iscales[g] * x[i];
            q[i] = (uint8_t)(iscales[g] != 0.0f ? quant_nearest(scaled, -32, 31) + 32 : 0);
        }
    }
    pack_q6(q, b);
}
ENCODE_ROW(q6_K, QK_K)

// As for Q3_K, with scales of eight bits.
static void weigh_block_q6_K(const float *x, const float *w, block_q6_K *b) {
    static const struct quant_level_format format = {
        16, -128, 127, {&quant_whole, -32.0f, 31.0f, -35.7f, 0.971f, 1}};
    struct quant_elements e;
    uint8_t q[QK_K];
    float d;
    quant_load(x, w, QK_K, &e);
    b->d = quant_encode_levels(&format, &e, b->scales, &d);
    // Quants against the scale that is stored, d times a whole multiple.
    for (int i = 0; i < QK_K; ++i) {
        const float inverse = quant_inverse(d * (float)b->scales[i / 16]);
        q[i] = (uint8_t)(quant_nearest(e.x[i] * inverse, -32, 31) + 32);
    }
    pack_q6(q, b);
}
ENCODE_ROW_WEIGHTED(q6_K, QK_K, weigh_block_q6_K)

ENCODE_ROW(q8_K, QK_K)
