// SPDX-License-Identifier: MIT
// Encoders of the small blocks for elements of unequal importance: scales by weighted least
// squares.
#include "quant/encode_search.h"
#include "quant/quant_block.h"

static void weigh_block_q2_0(const float *x, const float *w, block_q2_0 *b) {
    static const struct quant_levels levels = {&quant_whole, -1.0f, 2.0f, -13.7f, 0.667f, 1};
    uint8_t q[QK2_0];
    b->d = quant_encode_group(&levels, x, w, QK2_0, q);
    for (int j = 0; j < QK2_0 / 4; ++j)
        quant_pack_pairs(q + 4 * j, 1, b->qs + j);
}
ENCODE_ROW_WEIGHTED(q2_0, QK2_0, weigh_block_q2_0)

static void weigh_block_q4_0(const float *x, const float *w, block_q4_0 *b) {
    static const struct quant_levels levels = {&quant_whole, -8.0f, 7.0f, -11.1f, 0.926f, 2};
    uint8_t q[QK4_0];
    b->d = quant_encode_group(&levels, x, w, QK4_0, q);
    quant_pack_nibbles(q, QK4_0, b->qs);
}
ENCODE_ROW_WEIGHTED(q4_0, QK4_0, weigh_block_q4_0)

// Quants in 0 .. top, scale and minimum of 32 elements. They are searched relative to the mean,
// which keeps the digits of elements that differ little from one another.
static void weigh_range(const float *x, const float *w, int top, uint8_t *q, ggml_half *out_d,
                        ggml_half *out_m) {
    struct quant_elements e;
    quant_load(x, w, 32, &e);
    const struct quant_group g = {32, e.x, e.w};
    float mean = 0.0f;
    for (int i = 0; i < 32; ++i)
        mean += e.x[i] / 32.0f;
    for (int i = 0; i < 32; ++i)
        e.x[i] -= mean;
    struct quant_range range = quant_fit_range(&g, top);
    float m;
    *out_d = quant_half_scale(range.scale, &range.scale);
    *out_m = quant_half_scale(mean - range.min, &m);
    range.min = mean - m;
    quant_put_range(&g, top, range, q);
}

static void weigh_block_q4_1(const float *x, const float *w, block_q4_1 *b) {
    uint8_t q[QK4_1];
    weigh_range(x, w, 15, q, &b->d, &b->m);
    quant_pack_nibbles(q, QK4_1, b->qs);
}
ENCODE_ROW_WEIGHTED(q4_1, QK4_1, weigh_block_q4_1)

static void weigh_block_q5_0(const float *x, const float *w, block_q5_0 *b) {
    static const struct quant_levels levels = {&quant_whole, -16.0f, 15.0f, -18.4f, 0.962f, 2};
    uint8_t q[QK5_0];
    b->d = quant_encode_group(&levels, x, w, QK5_0, q);
    quant_pack_nibbles(q, QK5_0, b->qs);
    quant_pack_fifth_bits(q, b->qh);
}
ENCODE_ROW_WEIGHTED(q5_0, QK5_0, weigh_block_q5_0)

static void weigh_block_q5_1(const float *x, const float *w, block_q5_1 *b) {
    uint8_t q[QK5_1];
    weigh_range(x, w, 31, q, &b->d, &b->m);
    quant_pack_nibbles(q, QK5_1, b->qs);
    quant_pack_fifth_bits(q, b->qh);
}
ENCODE_ROW_WEIGHTED(q5_1, QK5_1, weigh_block_q5_1)
