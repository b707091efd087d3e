// SPDX-License-Identifier: MIT
// Q8_K, the type of activations that K-quants are multiplied with: nothing is stored in it, so it
// has no row in codec_list.inl.
#ifndef GGML_QUANT_BLOCK_Q8_K_H
#define GGML_QUANT_BLOCK_Q8_K_H

#include "quant/quant_block.h"

// 32 bits of scale, 256 signed bytes, and sums of 16 quants each, with which a minimum is
// multiplied once per group instead of once per element.
static inline void encode_block_q8_K(const float *x, block_q8_K *b) {
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

// Exact for the tests, which decode what kernels have rounded.
static inline void decode_block_q8_K(const block_q8_K *b, float *y) {
    for (int i = 0; i < QK_K; ++i)
        y[i] = b->d * (float)b->qs[i];
}

#endif
