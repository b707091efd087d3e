#version 450
// SPDX-License-Identifier: MIT
// Encoding to types with blocks of 64 (Q2_0, NVFP4) or 128 (Q1_0) elements, as BLOCK says, for
// cpy and set_rows: an invocation per block of the result (pack_block.glsl).
#include "ops/copy/pack_block.glsl"

// Signs times the mean magnitude.
void pack_q1_0(const uint at) {
    precise float sum = 0.0;
    for (uint i = 0; i < BLOCK; ++i) sum += abs(x[i]);
    put_half(at, sum / float(BLOCK));
    for (uint i = 0; i < BLOCK / 8; ++i) {
        uint bits = 0;
        for (uint k = 0; k < 8; ++k) bits |= uint(x[8 * i + k] >= 0.0) << k;
        put(at + 2 + i, bits);
    }
}

// -1, 0, 1 times the largest magnitude, counted from 0.
void pack_q2_0(const uint at) {
    const float d = largest_magnitude(0, BLOCK), id = inverse(d);
    put_half(at, d);
    for (uint i = 0; i < BLOCK / 4; ++i) {
        uint bits = 0;
        for (uint k = 0; k < 4; ++k) {
            precise float scaled = x[4 * i + k] * id;
            bits |= uint(nearest_away(scaled, -1.0, 2.0) + 1.0) << (2 * k);
        }
        put(at + 2 + i, bits);
    }
}

// Unsigned, with four bits of exponent and three of mantissa; to nearest, halves up, at most 448.
uint ue4m3(const float v) {
    if (!(v > 0.0)) return 0u;
    if (v >= 448.0) return 0x7eu;
    if (v < 1.0 / 64.0) {
        precise float q = v * 512.0 + 0.5;
        return uint(q);
    }
    return min(((floatBitsToUint(v) + (1u << 19)) >> 20) - (120u << 3), 0x7eu);
}

// Four groups of 16, each with an unsigned E4M3 scale. The scale is rounded first, and values are
// chosen for the rounded one.
void pack_nvfp4(const uint at) {
    for (uint g = 0; g < BLOCK / 16; ++g) {
        precise float wanted = largest_magnitude(16 * g, 16) / 6.0;
        const uint scale = ue4m3(wanted);
        const float d = unpack_ue4m3_half(scale);
        put(at + g, scale);
        for (uint i = 16 * g; i < 16 * g + 8; ++i)
            put(at + 4 + i - 8 * g,
                uint(nearest_fp4(x[i], d)) | uint(nearest_fp4(x[i + 8], d)) << 4);
    }
}

// As in pack_large.comp.
void pack(const uint at) {
    switch (DST_TYPE) {
    case TYPE_Q1_0: pack_q1_0(at); break;
    case TYPE_Q2_0: pack_q2_0(at); break;
    default: pack_nvfp4(at); break;
    }
}
