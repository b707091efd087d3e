// SPDX-License-Identifier: MIT
// Encoders of the non-linear four-bit types and of the ternary ones. The squares of the elements
// are the reference's weights.
#include "quant/encode_search.h"
#include "quant/quant_block.h"

static const struct quant_levels iq4_levels = {&quant_iq4, -127.0f, 113.0f, -142.8f, 0.943f, 2};

// Least-squares scale of 32 elements, their squares being the weights; 0 when all are tiny. The
// trial scales bring the largest magnitude to the first table entry, negated, and to what is up to
// 7 from it.
static float search_iq4(const float *x) {
    const float max = quant_signed_max(x, 32);
    if (fabsf(max) < 1e-15f) return 0.0f;
    const float first = (float)QUANT_IQ4[0];
    float w[32];
    for (int i = 0; i < 32; ++i)
        w[i] = x[i] * x[i];
    const struct quant_group g = {32, x, w};
    float inverse[QUANT_TRIALS] = {quant_inverse(-max / first)};
    for (int k = 1; k < QUANT_TRIALS; ++k)
        inverse[k] = ((float)(k - 8) + first) / max;
    struct quant_level_sums sums;
    quant_iq4.sum(&iq4_levels, &g, inverse, QUANT_TRIALS, &sums);
    float d = sums.l2[0] > 0.0f ? sums.xl[0] / sums.l2[0] : 0.0f;
    float best = d * sums.xl[0];
    for (int k = 1; k < QUANT_TRIALS; ++k) {
        if (sums.l2[k] > 0.0f && sums.xl[k] * sums.xl[k] > best * sums.l2[k]) {
            d = sums.xl[k] / sums.l2[k];
            best = d * sums.xl[k];
        }
    }
    return d;
}

// Of two equally near table entries the higher.
// Counts the boundaries that are reached instead of searching, so that the loop has no branches.
static void put_iq4(const float *x, float id, uint8_t *qs) {
    uint8_t q[32];
    for (int j = 0; j < 32; ++j) {
        int index = 0;
#pragma GCC unroll 16
        for (int i = 1; i < 16; ++i)
            index += id * x[j] >= 0.5f * (float)(QUANT_IQ4[i - 1] + QUANT_IQ4[i]);
        q[j] = (uint8_t)index;
    }
    quant_pack_nibbles(q, 32, qs);
}

// The reference search; with importance, weigh_ functions use quant_fit_levels() instead.
static void encode_block_iq4_nl(const float *x, block_iq4_nl *b) {
    const float d = search_iq4(x);
    b->d = GGML_FP32_TO_FP16(d);
    put_iq4(x, quant_inverse(d), b->qs);
}
ENCODE_ROW(iq4_nl, QK4_NL)

static void weigh_block_iq4_nl(const float *x, const float *w, block_iq4_nl *b) {
    struct quant_elements e;
    const struct quant_group g = {QK4_NL, e.x, e.w};
    float d;
    quant_load(x, w, QK4_NL, &e);
    b->d = quant_fit_levels(&iq4_levels, &g, &d);
    put_iq4(e.x, quant_inverse(d), b->qs);
}
ENCODE_ROW_WEIGHTED(iq4_nl, QK4_NL, weigh_block_iq4_nl)

// Adds the six-bit scale of a group, which is offset by 32, to its two places.
static void put_iq4_xs_scale(block_iq4_xs *b, int g, int scale) {
    b->scales_l[g / 2] |= (uint8_t)(((scale + 32) & 15) << (4 * (g % 2)));
    b->scales_h |= (uint16_t)(((scale + 32) >> 4) << (2 * g));
}

// Scales of groups are multiples of d in -32 .. 31, the one of largest magnitude being -32.
static void encode_block_iq4_xs(const float *x, block_iq4_xs *b) {
    float scales[QK_K / 32];
    for (int g = 0; g < QK_K / 32; ++g)
        scales[g] = search_iq4(x + 32 * g);
    const float d = -quant_signed_max(scales, QK_K / 32) / 32.0f;
    const float id = quant_inverse(d);
    memset(b, 0, sizeof(*b));
    b->d = GGML_FP32_TO_FP16(d);
    for (int g = 0; g < QK_K / 32; ++g) {
        const int scale = quant_nearest(id * scales[g], -32, 31);
        put_iq4(x + 32 * g, quant_inverse(d * (float)scale), b->qs + 16 * g);
        put_iq4_xs_scale(b, g, scale);
    }
}
ENCODE_ROW(iq4_xs, QK_K)

static void weigh_block_iq4_xs(const float *x, const float *w, block_iq4_xs *b) {
    static const struct quant_level_format format = {
        32, -32, 31, {&quant_iq4, -127.0f, 113.0f, -142.8f, 0.943f, 1}};
    struct quant_elements e;
    int8_t scales[QUANT_MAX_GROUPS];
    float d;
    quant_load(x, w, QK_K, &e);
    memset(b, 0, sizeof(*b));
    b->d = quant_encode_levels(&format, &e, scales, &d);
    for (int g = 0; g < QK_K / 32; ++g) {
        put_iq4(e.x + 32 * g, quant_inverse(d * (float)scales[g]), b->qs + 16 * g);
        put_iq4_xs_scale(b, g, scales[g]);
    }
}
ENCODE_ROW_WEIGHTED(iq4_xs, QK_K, weigh_block_iq4_xs)

// Trits 0 .. 2 for -d, 0 and d, with d the largest magnitude of the block; returns d as F16.
static ggml_half encode_trits(const float *x, uint8_t *trits) {
    const float d = quant_max_abs(x, QK_K);
    const float id = quant_inverse(d);
    for (int i = 0; i < QK_K; ++i)
        trits[i] = (uint8_t)(quant_round(x[i] * id, -1, 1) + 1);
    return GGML_FP32_TO_FP16(d);
}

// Packs n_digits * n_bytes trits, most significant first, into bytes that hold five each.
static const uint8_t *pack_trits(const uint8_t *trits, int n_bytes, int n_digits, uint8_t *qs) {
    for (int m = 0; m < n_bytes; ++m) {
        uint16_t value = 0;
        for (int n = 0; n < 5; ++n)
            value = (uint16_t)(3 * value + (n < n_digits ? trits[m + n * n_bytes] : 0));
        // Ceiling of value * 256 / 243: the smallest byte whose first five digits by trit() are
        // those of value.
        qs[m] = (uint8_t)((value * 256 + 242) / 243);
    }
    return trits + n_bytes * n_digits;
}

// The inverse of decode_block_tq1_0().
static void pack_tq1_0(const uint8_t *trits, block_tq1_0 *b) {
    trits = pack_trits(trits, 32, 5, b->qs);
    trits = pack_trits(trits, 16, 5, b->qs + 32);
    pack_trits(trits, 4, 4, b->qh);
}

static void encode_block_tq1_0(const float *x, block_tq1_0 *b) {
    uint8_t trits[QK_K];
    b->d = encode_trits(x, trits);
    pack_tq1_0(trits, b);
}
ENCODE_ROW(tq1_0, QK_K)

// Two halves of 128 elements, four trits a byte.
static void pack_tq2_0(const uint8_t *trits, block_tq2_0 *b) {
    quant_pack_pairs(trits, 32, b->qs);
    quant_pack_pairs(trits + QK_K / 2, 32, b->qs + 32);
}

static void encode_block_tq2_0(const float *x, block_tq2_0 *b) {
    uint8_t trits[QK_K];
    b->d = encode_trits(x, trits);
    pack_tq2_0(trits, b);
}
ENCODE_ROW(tq2_0, QK_K)

// Trits by weighted least squares instead of the largest magnitude.
static ggml_half weigh_trits(const float *x, const float *w, uint8_t *trits) {
    static const struct quant_levels levels = {&quant_whole, -1.0f, 1.0f, -13.7f, 0.667f, 1};
    return quant_encode_group(&levels, x, w, QK_K, trits);
}

static void weigh_block_tq1_0(const float *x, const float *w, block_tq1_0 *b) {
    uint8_t trits[QK_K];
    b->d = weigh_trits(x, w, trits);
    pack_tq1_0(trits, b);
}
ENCODE_ROW_WEIGHTED(tq1_0, QK_K, weigh_block_tq1_0)

static void weigh_block_tq2_0(const float *x, const float *w, block_tq2_0 *b) {
    uint8_t trits[QK_K];
    b->d = weigh_trits(x, w, trits);
    pack_tq2_0(trits, b);
}
ENCODE_ROW_WEIGHTED(tq2_0, QK_K, weigh_block_tq2_0)
