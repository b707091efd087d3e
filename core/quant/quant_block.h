// SPDX-License-Identifier: MIT
// What the encoders and decoders share: rows from blocks, the non-linear tables, rounding.
#ifndef GGML_QUANT_BLOCK_H
#define GGML_QUANT_BLOCK_H

#include <math.h>

#include "ggml-common.h"
#include "ggml-impl.h"
#include "quant/quant.h"

// The row decoder of a type from static decode_block_<name>(const block_<name> *, float *).
#define DECODE_ROW(name, block)                                                                    \
    void dequantize_row_##name(const void *x, float *y, int64_t k) {                               \
        const block_##name *blocks = x;                                                            \
        for (int64_t i = 0; i < k / (block); ++i)                                                  \
            decode_block_##name(blocks + i, y + i * (block));                                      \
    }

// The row encoder of a type from static encode_block_<name>(const float *, block_<name> *).
#define ENCODE_ROW(name, block) ENCODE_ROW_AS(name, block, encode_block_##name)
#define ENCODE_ROW_AS(name, block, encode)                                                         \
    void quantize_row_##name##_ref(const float *x, void *y, int64_t k) {                           \
        block_##name *blocks = y;                                                                  \
        for (int64_t i = 0; i < k / (block); ++i)                                                  \
            encode(x + i * (block), blocks + i);                                                   \
    }

// The row encoder for elements of unequal importance.
#define ENCODE_ROW_WEIGHTED(name, block, encode)                                                   \
    void quantize_row_##name##_weighted(const float *x, const float *w, void *y, int64_t k) {      \
        block_##name *blocks = y;                                                                  \
        for (int64_t i = 0; i < k / (block); ++i)                                                  \
            encode(x + i * (block), w + i * (block), blocks + i);                                  \
    }

// Both row encoders of a type from static encode_block_<name>(const float *, const float *weights,
// block_<name> *); the reference has no weights.
#define ENCODE_ROW_BOTH(name, block)                                                               \
    static void encode_reference_##name(const float *x, block_##name *b) {                         \
        encode_block_##name(x, NULL, b);                                                           \
    }                                                                                              \
    ENCODE_ROW_AS(name, block, encode_reference_##name)                                            \
    ENCODE_ROW_WEIGHTED(name, block, encode_block_##name)

// E2M1 values doubled, so that they are whole; the scale is halved in turn.
static const int8_t QUANT_FP4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
static const int8_t QUANT_IQ4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

// Half the value of an unsigned E4M3 byte (bias 7).
static inline float quant_ue4m3_half(uint8_t x) {
    if (x == 0 || x == 0x7F) return 0.0f;
    const int exponent = (x >> 3) & 15;
    const float mantissa = (float)(x & 7);
    const float value =
        exponent == 0 ? ldexpf(mantissa, -9) : ldexpf(1.0f + mantissa / 8.0f, exponent - 7);
    return value * 0.5f;
}

// Nearest integer, ties to even, kept in [low, high]; NaN gives low. |low|, |high| < 2^22.
static inline int quant_nearest(float value, int low, int high) {
    if (!(value > (float)low)) return low;
    if (value >= (float)high) return high;
    const float shifted = value + 12582912.0f; // 1.5 * 2^23: the addition rounds
    int32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    return (bits & 0x007FFFFF) - 0x00400000;
}

// Truncated towards zero and kept in [low, high]; NaN gives low.
static inline int quant_truncate(float value, int low, int high) {
    if (!(value > (float)low)) return low;
    return value >= (float)high ? high : (int)value;
}

// The element with the largest magnitude, with its sign; the first of equals.
static inline float quant_signed_max(const float *x, int n) {
    float max = 0.0f;
    for (int j = 0; j < n; ++j) {
        if (fabsf(x[j]) > fabsf(max)) max = x[j];
    }
    return max;
}

static inline float quant_inverse(float d) {
    return d != 0.0f ? 1.0f / d : 0.0f;
}

// Six-bit scale and minimum of group j of a Q4_K or Q5_K block.
static inline void quant_k4_scale(const uint8_t *scales, int j, int *out_scale, int *out_min) {
    if (j < 4) {
        *out_scale = scales[j] & 63;
        *out_min = scales[j + 4] & 63;
    } else {
        *out_scale = (scales[j + 4] & 15) | ((scales[j - 4] >> 6) << 4);
        *out_min = (scales[j + 4] >> 4) | ((scales[j] >> 6) << 4);
    }
}

// Six-bit scale of group j of a Q3_K block, offset by 32.
static inline int quant_q3_scale(const uint8_t *scales, int j) {
    const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    const int high = (scales[8 + j % 4] >> (2 * (j / 4))) & 3;
    return (low | high << 4) - 32;
}

#endif
