// SPDX-License-Identifier: MIT
// Blocks of 32 from floats. Scales are the formats' plain ones: from the largest element, or from
// the range.
#ifndef GPU_KERNELS_ENCODE_H
#define GPU_KERNELS_ENCODE_H

#include "decode.h"
#include "gpu_math.h"

GPU_FN void gpu_put_half(GPU_GLOBAL u8 *p, float value) {
    *(GPU_GLOBAL u16 *)p = gpu_f32_to_f16(value);
}

// The element of the largest size with its sign; the least and the largest element.
struct gpu_extremes {
    float largest, least, most;
};
GPU_FN gpu_extremes gpu_extremes_of(GPU_PRIVATE float *x) {
    gpu_extremes e = {0.0f, x[0], x[0]};
    for (u32 i = 0; i < 32; ++i) {
        if (gpu_abs(x[i]) > gpu_abs(e.largest)) e.largest = x[i];
        e.least = x[i] < e.least ? x[i] : e.least;
        e.most = x[i] > e.most ? x[i] : e.most;
    }
    return e;
}

// To the nearest of 0 to `top`; not a number: 0.
GPU_FN u32 gpu_level(float x, u32 top) {
    const float level = gpu_floor(x + 0.5f);
    return !(level > 0.0f) ? 0u : level > (float)top ? top : (u32)level;
}

// Q8_1 has, behind the scale, the sum of what the block stands for.
GPU_FN void gpu_encode_q8(int type, GPU_PRIVATE float *x, GPU_GLOBAL u8 *b) {
    const float scale = gpu_abs(gpu_extremes_of(x).largest) / 127.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    GPU_GLOBAL u8 *qs = b + (type == TYPE_Q8_1 ? 4 : 2);
    int sum = 0;
    gpu_put_half(b, scale);
    for (u32 i = 0; i < 32; ++i) {
        const u32 level = gpu_level(x[i] * inverse + 128.0f, 255);
        qs[i] = (u8)(level ^ 128u);
        sum += (int)level - 128;
    }
    if (type == TYPE_Q8_1) gpu_put_half(b + 2, (float)sum * scale);
}

// Number of four bits whose value, of the table's, is nearest to x over d.
// Sizes 0 to 7 of the table rise, so that the index is the number of steps up to which the next is
// nearer; ties stay below, and no negative zero is made.
GPU_FN u32 gpu_nearest_fp4(float x, float d) {
    u32 index = 0;
    for (u32 i = 1; i < 8; ++i)
        index += gpu_abs((float)gpu_fp4_values[i] * d - gpu_abs(x)) <
                 gpu_abs((float)gpu_fp4_values[i - 1] * d - gpu_abs(x));
    return x < 0.0f && index > 0 ? index + 8 : index;
}
// The exponent of the largest element, less that of the largest value, 6 = 1.5 * 2^2.
GPU_FN void gpu_encode_mxfp4(GPU_PRIVATE float *x, GPU_GLOBAL u8 *b) {
    const u32 largest = gpu_bits(gpu_extremes_of(x).largest) >> 23 & 255u;
    const u32 e = largest > 2u ? largest - 2u : 0u;
    const float d = gpu_e8m0_half(e);
    b[0] = (u8)e;
    for (u32 i = 0; i < 16; ++i)
        b[1 + i] = (u8)(gpu_nearest_fp4(x[i], d) | gpu_nearest_fp4(x[i + 16], d) << 4);
}

// Nibble j of IQ4_NL whose value is nearest.
GPU_FN u32 gpu_nearest_iq4(float x) {
    u32 best = 0;
    for (u32 i = 1; i < 16; ++i) {
        if (gpu_abs(x - (float)gpu_iq4_values[i]) < gpu_abs(x - (float)gpu_iq4_values[best]))
            best = i;
    }
    return best;
}

// Nibbles, with a fifth bit of each in a word of its own where the type has them: at `bits`.
GPU_FN void gpu_encode_nibbles(int type, GPU_PRIVATE float *x, GPU_GLOBAL u8 *b) {
    const gpu_extremes e = gpu_extremes_of(x);
    const bool has_offset = type == TYPE_Q4_1 || type == TYPE_Q5_1,
               has_bits = type == TYPE_Q5_0 || type == TYPE_Q5_1;
    const u32 top = has_bits ? 31 : 15;
    // Without an offset the largest element, with its sign, becomes the end of the range that
    // reaches further: -8, -16 or -127.
    const float scale = has_offset            ? (e.most - e.least) / (float)top
                        : type == TYPE_IQ4_NL ? e.largest / -127.0f
                                              : e.largest / (has_bits ? -16.0f : -8.0f);
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    const float zero = has_offset ? 0.0f : has_bits ? 16.0f : 8.0f;
    u32 bits = 0;
    GPU_GLOBAL u8 *qs = b + (has_offset ? 4 : 2) + (has_bits ? 4 : 0);
    gpu_put_half(b, scale);
    if (has_offset) gpu_put_half(b + 2, e.least);
    for (u32 i = 0; i < 16; ++i) {
        u32 q[2];
        for (u32 h = 0; h < 2; ++h) {
            const float from = x[i + 16 * h] - (has_offset ? e.least : 0.0f);
            q[h] = type == TYPE_IQ4_NL ? gpu_nearest_iq4(from * inverse)
                                       : gpu_level(from * inverse + zero, top);
            bits |= (q[h] >> 4) << (i + 16 * h);
        }
        qs[i] = (u8)((q[0] & 15u) | (q[1] & 15u) << 4);
    }
    for (u32 i = 0; i < 4 && has_bits; ++i)
        qs[(i32)i - 4] = (u8)(bits >> (8 * i));
}

GPU_FAR void gpu_encode_block(int type, GPU_PRIVATE float *x, GPU_GLOBAL u8 *b) {
    if (type == TYPE_Q8_0 || type == TYPE_Q8_1)
        gpu_encode_q8(type, x, b);
    else if (type == TYPE_MXFP4)
        gpu_encode_mxfp4(x, b);
    else
        gpu_encode_nibbles(type, x, b);
}

#endif
