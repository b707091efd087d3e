// SPDX-License-Identifier: MIT
// Blocks of 64, 128 and 256 from floats. As in encode.h, scales are the formats' plain ones, from
// the largest element or from the range of a group; those of groups are multiples of the block's.
#ifndef GPU_KERNELS_ENCODE_LARGE_H
#define GPU_KERNELS_ENCODE_LARGE_H

#include "encode.h"

enum { LARGE_BLOCK = 256 };

GPU_FN float gpu_inverse(float d) {
    return d != 0.0f ? 1.0f / d : 0.0f;
}
// What is written as a half and read again.
GPU_FN float gpu_put_scale(GPU_GLOBAL u8 *b, float d) {
    gpu_put_half(b, d);
    return gpu_half_at(b);
}
// To the nearest of -low to high; not a number: -low.
GPU_FN int gpu_nearest(float x, int low, int high) {
    return (int)gpu_level(x + (float)low, (u32)(low + high)) - low;
}
// The element of n that is largest by size, with its sign.
GPU_FN float gpu_extreme(GPU_PRIVATE const float *x, u32 n) {
    float largest = 0.0f;
    for (u32 i = 0; i < n; ++i)
        largest = gpu_abs(x[i]) > gpu_abs(largest) ? x[i] : largest;
    return largest;
}

// --- bits of many elements -----------------------------------------------------------------------

// Two bits each, elements 32 apart in a byte, from bit `shift` of the elements on.
GPU_FN void gpu_put_twos(GPU_GLOBAL u8 *b, GPU_PRIVATE const u8 *q) {
    for (u32 i = 0; i < 64; ++i) {
        const u32 j = i / 32 * 128 + i % 32;
        b[i] = (u8)((q[j] & 3u) | (q[j + 32] & 3u) << 2 | (q[j + 64] & 3u) << 4 |
                    (q[j + 96] & 3u) << 6);
    }
}
// Four bits each, elements `apart` in a byte.
GPU_FN void gpu_put_fours(GPU_GLOBAL u8 *b, GPU_PRIVATE const u8 *q, u32 apart) {
    for (u32 i = 0; i < 128; ++i) {
        const u32 j = i / apart * 2 * apart + i % apart;
        b[i] = (u8)((q[j] & 15u) | (q[j + apart] & 15u) << 4);
    }
}
// Bit `bit` of each: byte i has those of i, i + 32, ...
GPU_FN void gpu_put_bits(GPU_GLOBAL u8 *b, GPU_PRIVATE const u8 *q, u32 bit) {
    for (u32 i = 0; i < 32; ++i) {
        u32 bits = 0;
        for (u32 g = 0; g < 8; ++g)
            bits |= ((u32)q[32 * g + i] >> bit & 1u) << g;
        b[i] = (u8)bits;
    }
}

// --- scales and minima ---------------------------------------------------------------------------

// value = d scale q - low minimum, groups of n: writes d and low behind `at_d`, leaves the quants
// in q.
// Two passes over the groups: spans and minima, of which the largest ones make d and low; then
// quants by the scales as they were rounded, which makes good a part of what the rounding lost.
GPU_FN void gpu_encode_ranges(GPU_PRIVATE const float *x, u32 n, u32 top, u32 most,
                              GPU_GLOBAL u8 *at_d, GPU_PRIVATE u8 *scales, GPU_PRIVATE u8 *minima,
                              GPU_PRIVATE u8 *q) {
    float span[16], least[16], largest = 0.0f, largest_least = 0.0f;
    for (u32 g = 0; g < LARGE_BLOCK / n; ++g) {
        float low = 0.0f, high = x[g * n];
        for (u32 i = g * n; i < (g + 1) * n; ++i) {
            low = x[i] < low ? x[i] : low;
            high = x[i] > high ? x[i] : high;
        }
        span[g] = high > low ? (high - low) / (float)top : 0.0f;
        least[g] = -low;
        largest = span[g] > largest ? span[g] : largest;
        largest_least = least[g] > largest_least ? least[g] : largest_least;
    }
    const float d = gpu_put_scale(at_d, largest / (float)most),
                d_least = gpu_put_scale(at_d + 2, largest_least / (float)most);
    for (u32 g = 0; g < LARGE_BLOCK / n; ++g) {
        scales[g] = (u8)gpu_level(span[g] * gpu_inverse(d), most);
        minima[g] = (u8)gpu_level(least[g] * gpu_inverse(d_least), most);
        const float inverse = gpu_inverse(d * (float)scales[g]), shift = d_least * (float)minima[g];
        for (u32 i = g * n; i < (g + 1) * n; ++i)
            q[i] = (u8)gpu_level((x[i] + shift) * inverse, top);
    }
}

GPU_FN void gpu_encode_q2_K(GPU_PRIVATE const float *x, GPU_PRIVATE u8 *q, GPU_GLOBAL u8 *b) {
    u8 scales[16], minima[16];
    gpu_encode_ranges(x, 16, 3, 15, b + 80, scales, minima, q);
    for (u32 g = 0; g < 16; ++g)
        b[g] = (u8)(scales[g] | minima[g] << 4);
    gpu_put_twos(b + 16, q);
}
GPU_FN void gpu_encode_q4_5_K(int type, GPU_PRIVATE const float *x, GPU_PRIVATE u8 *q,
                              GPU_GLOBAL u8 *b) {
    u8 scales[16], minima[16];
    gpu_encode_ranges(x, 32, type == TYPE_Q4_K ? 15 : 31, 63, b, scales, minima, q);
    for (u32 g = 0; g < 4; ++g) {
        // Six bits of groups 0 to 3 with the top pairs of groups 4 to 7 above them, whose low
        // nibbles follow.
        b[4 + g] = (u8)(scales[g] | scales[g + 4] >> 4 << 6);
        b[8 + g] = (u8)(minima[g] | minima[g + 4] >> 4 << 6);
        b[12 + g] = (u8)((scales[g + 4] & 15u) | (minima[g + 4] & 15u) << 4);
    }
    if (type == TYPE_Q5_K) gpu_put_bits(b + 16, q, 4);
    gpu_put_fours(b + (type == TYPE_Q4_K ? 16 : 48), q, 32);
}

// --- signed scales -------------------------------------------------------------------------------

// value = d scale q for groups of n, q from -low to high, scales from -most on: quants, counted
// from -low, in q, the scales behind.
GPU_FN void gpu_encode_signed(GPU_PRIVATE const float *x, u32 n, int low, int high, int most,
                              GPU_GLOBAL u8 *at_d, GPU_PRIVATE i8 *scales, GPU_PRIVATE u8 *q) {
    float own[16];
    for (u32 g = 0; g < LARGE_BLOCK / n; ++g)
        own[g] = gpu_extreme(x + g * n, n) / (float)-low;
    const float d = gpu_put_scale(at_d, gpu_extreme(own, LARGE_BLOCK / n) / (float)-most);
    for (u32 g = 0; g < LARGE_BLOCK / n; ++g) {
        scales[g] = (i8)gpu_nearest(own[g] * gpu_inverse(d), most, most - 1);
        const float inverse = gpu_inverse(d * (float)scales[g]);
        for (u32 i = g * n; i < (g + 1) * n; ++i)
            q[i] = (u8)(gpu_nearest(x[i] * inverse, low, high) + low);
    }
}

GPU_FN void gpu_encode_q3_K(GPU_PRIVATE const float *x, GPU_PRIVATE u8 *q, GPU_GLOBAL u8 *b) {
    i8 scales[16];
    gpu_encode_signed(x, 16, 4, 3, 32, b + 108, scales, q);
    for (u32 i = 0; i < 8; ++i)
        b[96 + i] = (u8)(((u32)(scales[i] + 32) & 15u) | ((u32)(scales[i + 8] + 32) & 15u) << 4);
    for (u32 i = 0; i < 4; ++i) {
        u32 bits = 0;
        for (u32 k = 0; k < 4; ++k)
            bits |= (u32)(scales[i + 4 * k] + 32) >> 4 << (2 * k);
        b[104 + i] = (u8)bits;
    }
    gpu_put_bits(b, q, 2);
    gpu_put_twos(b + 32, q);
}
GPU_FN void gpu_encode_q6_K(GPU_PRIVATE const float *x, GPU_PRIVATE u8 *q, GPU_GLOBAL u8 *b) {
    i8 scales[16];
    gpu_encode_signed(x, 16, 32, 31, 128, b + 208, scales, q);
    for (u32 g = 0; g < 16; ++g)
        b[192 + g] = (u8)scales[g];
    gpu_put_fours(b, q, 64);
    for (u32 i = 0; i < 64; ++i) {
        const u32 j = i / 32 * 128 + i % 32;
        b[128 + i] = (u8)((u32)q[j] >> 4 | (u32)q[j + 32] >> 4 << 2 | (u32)q[j + 64] >> 4 << 4 |
                          (u32)q[j + 96] >> 4 << 6);
    }
}
// Scales of six bits over the table of IQ4_NL.
GPU_FN void gpu_encode_iq4_xs(GPU_PRIVATE const float *x, GPU_GLOBAL u8 *b) {
    float own[8];
    for (u32 g = 0; g < 8; ++g)
        own[g] = gpu_extreme(x + 32 * g, 32) / -127.0f;
    const float d = gpu_put_scale(b, gpu_extreme(own, 8) / -32.0f);
    u32 bits = 0, pair = 0;
    for (u32 g = 0; g < 8; ++g) {
        const int scale = gpu_nearest(own[g] * gpu_inverse(d), 32, 31);
        const float inverse = gpu_inverse(d * (float)scale);
        const u32 code = (u32)(scale + 32);
        bits |= code >> 4 << (2 * g);
        pair = g % 2 == 0 ? code & 15u : pair | (code & 15u) << 4;
        b[4 + g / 2] = (u8)pair;
        for (u32 i = 0; i < 16; ++i)
            b[8 + 16 * g + i] = (u8)(gpu_nearest_iq4(x[32 * g + i] * inverse) |
                                     gpu_nearest_iq4(x[32 * g + 16 + i] * inverse) << 4);
    }
    *(GPU_GLOBAL u16 *)(b + 2) = (u16)bits;
}
// A float as the scale, and sums of 16 quants each.
GPU_FN void gpu_encode_q8_K(GPU_PRIVATE const float *x, GPU_GLOBAL u8 *b) {
    const float inverse = -127.0f * gpu_inverse(gpu_extreme(x, LARGE_BLOCK));
    *(GPU_GLOBAL float *)b = gpu_inverse(inverse);
    for (u32 g = 0; g < 16; ++g) {
        int sum = 0;
        for (u32 i = 16 * g; i < 16 * (g + 1); ++i) {
            const int q = gpu_nearest(x[i] * inverse, 127, 127);
            b[4 + i] = (u8)q;
            sum += q;
        }
        *(GPU_GLOBAL i16 *)(b + 260 + 2 * g) = (i16)sum;
    }
}

// --- three levels, one bit, four bits ------------------------------------------------------------

// -1 to `high` times the largest size, counted from 0; the scale is written.
GPU_FN void gpu_encode_levels(GPU_PRIVATE const float *x, u32 n, int high, GPU_GLOBAL u8 *at_d,
                              GPU_PRIVATE u8 *q) {
    const float d = gpu_abs(gpu_extreme(x, n)), inverse = gpu_inverse(d);
    gpu_put_half(at_d, d);
    for (u32 i = 0; i < n; ++i)
        q[i] = (u8)(gpu_nearest(x[i] * inverse, 1, high) + 1);
}
// n digits of base 3, `step` elements apart, as a fraction of 256.
// The digits are completed to five, and the fraction is rounded up: decode.h tells how they come
// back.
GPU_FN u8 gpu_ternary(GPU_PRIVATE const u8 *q, u32 step, u32 n) {
    u32 digits = 0;
    for (u32 k = 0; k < 5; ++k)
        digits = 3 * digits + (k < n ? q[step * k] : 0u);
    return (u8)((digits * 256u + 242u) / 243u);
}
GPU_FN void gpu_encode_tq1_0(GPU_PRIVATE const float *x, GPU_PRIVATE u8 *q, GPU_GLOBAL u8 *b) {
    gpu_encode_levels(x, LARGE_BLOCK, 1, b + 52, q);
    for (u32 i = 0; i < 32; ++i)
        b[i] = gpu_ternary(q + i, 32, 5);
    for (u32 i = 0; i < 16; ++i)
        b[32 + i] = gpu_ternary(q + 160 + i, 16, 5);
    for (u32 i = 0; i < 4; ++i)
        b[48 + i] = gpu_ternary(q + 240 + i, 4, 4);
}
GPU_FN void gpu_encode_q2_0(GPU_PRIVATE const float *x, GPU_PRIVATE u8 *q, GPU_GLOBAL u8 *b) {
    gpu_encode_levels(x, 64, 2, b, q);
    for (u32 i = 0; i < 16; ++i)
        b[2 + i] = (u8)(q[4 * i] | q[4 * i + 1] << 2 | q[4 * i + 2] << 4 | q[4 * i + 3] << 6);
}
// Signs times the mean size.
GPU_FN void gpu_encode_q1_0(GPU_PRIVATE const float *x, GPU_GLOBAL u8 *b) {
    float sum = 0.0f;
    for (u32 i = 0; i < 128; ++i)
        sum += gpu_abs(x[i]);
    gpu_put_half(b, sum / 128.0f);
    for (u32 i = 0; i < 16; ++i) {
        u32 bits = 0;
        for (u32 k = 0; k < 8; ++k)
            bits |= (u32)(x[8 * i + k] >= 0.0f) << k;
        b[2 + i] = (u8)bits;
    }
}
// To an unsigned number of four bits of exponent and three of mantissa, at most 448.
GPU_FN u32 gpu_to_ue4m3(float v) {
    if (!(v > 0.0f)) return 0;
    // 448 is 1.75 2^8, 0.015625 the least normal number; below, the numbers are multiples of 2^-9.
    // 2^19 is half of the last bit that is kept, 120 the difference of the biases of the exponents.
    if (v >= 448.0f) return 0x7e;
    if (v < 0.015625f) return (u32)(v * 512.0f + 0.5f);
    const u32 code = ((gpu_bits(v) + (1u << 19)) >> 20) - (120u << 3);
    return code < 0x7e ? code : 0x7e;
}
// Groups of 16 with a scale each, for which values are chosen after it is rounded.
GPU_FN void gpu_encode_nvfp4(GPU_PRIVATE const float *x, GPU_GLOBAL u8 *b) {
    for (u32 g = 0; g < 4; ++g) {
        const u32 scale = gpu_to_ue4m3(gpu_abs(gpu_extreme(x + 16 * g, 16)) / 6.0f);
        const float d = gpu_ue4m3_half(scale);
        b[g] = (u8)scale;
        for (u32 i = 0; i < 8; ++i)
            b[4 + 8 * g + i] = (u8)(gpu_nearest_fp4(x[16 * g + i], d) |
                                    gpu_nearest_fp4(x[16 * g + 8 + i], d) << 4);
    }
}

GPU_FAR void gpu_encode_large_block(int type, GPU_PRIVATE const float *x, GPU_GLOBAL u8 *b) {
    u8 q[LARGE_BLOCK];
    switch (type) {
    case TYPE_Q2_K: gpu_encode_q2_K(x, q, b); break;
    case TYPE_Q3_K: gpu_encode_q3_K(x, q, b); break;
    case TYPE_Q4_K:
    case TYPE_Q5_K: gpu_encode_q4_5_K(type, x, q, b); break;
    case TYPE_Q6_K: gpu_encode_q6_K(x, q, b); break;
    case TYPE_Q8_K: gpu_encode_q8_K(x, b); break;
    case TYPE_IQ4_XS: gpu_encode_iq4_xs(x, b); break;
    case TYPE_TQ1_0: gpu_encode_tq1_0(x, q, b); break;
    case TYPE_TQ2_0:
        gpu_encode_levels(x, LARGE_BLOCK, 1, b + 64, q);
        gpu_put_twos(b, q);
        break;
    case TYPE_NVFP4: gpu_encode_nvfp4(x, b); break;
    case TYPE_Q2_0: gpu_encode_q2_0(x, q, b); break;
    default: gpu_encode_q1_0(x, b); break;
    }
}

#endif
