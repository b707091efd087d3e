#version 450
// SPDX-License-Identifier: MIT
// Encoding to types with blocks of 32 elements (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, MXFP4, IQ4_NL),
// for cpy and set_rows: an invocation per block of the result (pack_block.glsl).
#define BLOCK 32
#include "ops/copy/pack_block.glsl"

// Turns the elements into (x - from) * id + shift, truncated and kept in 0 .. high.
void round_up(const float from, const float id, const float shift, const float high) {
    for (uint i = 0; i < 32; ++i) {
        precise float q = (x[i] - from) * id + shift;
        x[i] = trunc(limited(q, 0.0, high));
    }
}

void pack_signed(const uint at, const float steps) { // 16: Q4_0, 32: Q5_0
    precise float d = extreme(0, 32) / (-steps / 2.0);
    put_half(at, d);
    round_up(0.0, inverse(d), steps / 2.0 + 0.5, steps - 1.0);
}

// Scale and minimum, both F16; values are rounded to the nearest of `steps` levels.
void pack_unsigned(const uint at, const float steps) {
    const vec2 range = range_of(0, 32);
    precise float d = (range.y - range.x) / (steps - 1.0);
    put_half(at, d);
    put_half(at + 2, range.x);
    round_up(range.x, inverse(d), 0.5, steps - 1.0);
}

// The fifth bits, then the nibbles of the rest.
void put_fives(const uint at) {
    uint high = 0;
    for (uint i = 0; i < 32; ++i) {
        high |= uint(x[i] >= 16.0) << i;
        x[i] -= x[i] >= 16.0 ? 16.0 : 0.0;
    }
    for (uint i = 0; i < 4; ++i) put(at + i, (high >> (8 * i)) & 255u);
    put_nibbles(at + 4, 0);
}

// 8-bit values with one scale.
void pack_bytes(const uint at) {
    precise float d = largest_magnitude(0, 32) / 127.0;
    const float id = inverse(d);
    put_half(at, d);
    for (uint i = 0; i < 32; ++i) {
        precise float scaled = x[i] * id;
        put(at + 2 + i, uint(int(nearest_away(scaled, -127.0, 127.0))) & 255u);
    }
}

// The exponent of the largest magnitude, less that of the largest value, 6 = 1.5 * 2^2.
void pack_mxfp4(const uint at) {
    const uint largest = floatBitsToUint(largest_magnitude(0, 32)) >> 23;
    const uint e = largest > 2u ? min(largest - 2u, 254u) : 0u;
    const float d = unpack_e8m0_half(e);
    put(at, e);
    for (uint i = 0; i < 32; ++i) x[i] = nearest_fp4(x[i], d);
    put_nibbles(at + 1, 0);
}

// The scale is searched for, since the levels aren't evenly spaced.
void pack_iq4_nl(const uint at) {
    const float d = search_iq4(0);
    put_half(at, d);
    index_iq4(0, inverse(d));
    put_nibbles(at + 2, 0);
}

// As in pack_large.comp.
void pack(const uint at) {
    switch (DST_TYPE) {
    case TYPE_Q4_0: pack_signed(at, 16.0); put_nibbles(at + 2, 0); break;
    case TYPE_Q4_1: pack_unsigned(at, 16.0); put_nibbles(at + 4, 0); break;
    case TYPE_Q5_0: pack_signed(at, 32.0); put_fives(at + 2); break;
    case TYPE_Q5_1: pack_unsigned(at, 32.0); put_fives(at + 4); break;
    case TYPE_Q8_0: pack_bytes(at); break;
    case TYPE_MXFP4: pack_mxfp4(at); break;
    default: pack_iq4_nl(at); break;
    }
}
