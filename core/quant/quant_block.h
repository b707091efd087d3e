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

// Half the value of an unsigned E4M3 byte (bias 7). Above the subnormals its bits are those of a
// float at another place.
static inline float quant_ue4m3_half(uint8_t x) {
    if (x == 0 || x == 0x7F) return 0.0f;
    if ((x & 0x78) == 0) return (float)(x & 7) * 0.0009765625f; // 2^-10
    const uint32_t bits = ((uint32_t)(x & 0x7F) << 20) + ((uint32_t)(127 - 7 - 1) << 23);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

// Kept in [low, high]; NaN gives low. Loops over it are vectorised.
static inline float quant_clamp(float value, float low, float high) {
    value = value > low ? value : low;
    return value < high ? value : high;
}

// Nearest integer, ties to even; |value| < 2^22, anything else gives some integer of that size.
static inline int quant_nearest_small(float value) {
    const float shifted = value + 12582912.0f; // 1.5 * 2^23: the addition rounds
    int32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    return (bits & 0x007FFFFF) - 0x00400000;
}

// The same kept in [low, high]; NaN gives low. |low|, |high| < 2^22.
static inline int quant_nearest(float value, int low, int high) {
    return quant_nearest_small(quant_clamp(value, (float)low, (float)high));
}

// Nearest integer, halves away from zero, kept in [low, high]; NaN gives low. |low|, |high| < 2^22.
static inline int quant_round(float value, int low, int high) {
    const float half = 0.49999997f; // What is just below one half must not be lifted over it.
    value = quant_clamp(value, (float)low, (float)high);
    return (int)(value + copysignf(half, value));
}

// Truncated towards zero and kept in [low, high]; NaN gives low.
static inline int quant_truncate(float value, int low, int high) {
    return (int)quant_clamp(value, (float)low, (float)high);
}

// Largest magnitude, by the order of the bits, which is that of non-negative numbers; NaN is above
// infinity.
static inline float quant_max_abs(const float *x, int n) {
    int32_t max = 0;
    for (int j = 0; j < n; ++j) {
        int32_t bits;
        memcpy(&bits, x + j, sizeof(bits));
        bits &= 0x7FFFFFFF;
        max = max > bits ? max : bits;
    }
    float result;
    memcpy(&result, &max, sizeof(result));
    return result;
}

// The element with the largest magnitude, with its sign; the first of equals.
static inline float quant_signed_max(const float *x, int n) {
    const float max = quant_max_abs(x, n);
    for (int j = 0; max > 0.0f && j < n; ++j) {
        if (fabsf(x[j]) == max) return x[j];
    }
    return max;
}

// 1 / d, and 0 for 0: a block of zeros gets quants of 0 instead of NaN.
static inline float quant_inverse(float d) {
    return d != 0.0f ? 1.0f / d : 0.0f;
}

// Two quants a byte: those of the first half low.
static inline void quant_pack_nibbles(const uint8_t *q, int n, uint8_t *qs) {
    for (int j = 0; j < n / 2; ++j)
        qs[j] = (uint8_t)((q[j] & 15) | q[j + n / 2] << 4);
}

// The fifth bits of 32 quants.
static inline void quant_pack_fifth_bits(const uint8_t *q, uint8_t *qh) {
    memset(qh, 0, 4);
    for (int j = 0; j < 32; ++j)
        qh[j / 8] |= (uint8_t)((q[j] >> 4) << (j % 8));
}

// Four two-bit quants a byte: quant j + k * stride in bits 2 k and up of byte j.
static inline void quant_pack_pairs(const uint8_t *q, int stride, uint8_t *qs) {
    for (int j = 0; j < stride; ++j) {
        qs[j] =
            (uint8_t)(q[j] | q[j + stride] << 2 | q[j + 2 * stride] << 4 | q[j + 3 * stride] << 6);
    }
}

// Eight signs from a code of seven: the eighth makes the number of negative ones even.
static inline uint8_t quant_sign_byte(uint32_t code) {
    const uint32_t odd = (0x6996u >> ((code ^ code >> 4) & 15)) & 1;
    return (uint8_t)(code | odd << 7);
}

// The scale of an IQ1_M block, which is spread over the top nibbles of its scales.
static inline ggml_half quant_iq1_m_scale(const uint16_t scales[QK_K / 64]) {
    return (ggml_half)(scales[0] >> 12 | (scales[1] >> 8 & 0x00F0) | (scales[2] >> 4 & 0x0F00) |
                       (scales[3] & 0xF000));
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
