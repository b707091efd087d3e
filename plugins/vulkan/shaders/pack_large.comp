#version 450
// SPDX-License-Identifier: MIT
// Encodes blocks of 256.
#define BLOCK 256
#include "pack_block.glsl"

float scales[16], minima[16];

float largest_of(const float values[16], const uint n) {
    float largest = 0.0;
    for (uint g = 0; g < n; ++g) largest = values[g] > largest ? values[g] : largest;
    return largest;
}

// Scales and offsets of groups of `size` in `steps`, as whole numbers up to `most`, with the two
// scales of the block; turns the elements into their numbers.
void quantise_ranges(const uint size, const float steps, const float most, const uint at_d) {
    const uint n = 256 / size;
    for (uint g = 0; g < n; ++g) {
        const vec2 range = range_of(g * size, size);
        minima[g] = range.x < 0.0 ? -range.x : 0.0;
        scales[g] = (max(range.y, 0.0) + minima[g]) / (steps - 1.0);
    }
    const float d = largest_of(scales, n) / most, d_min = largest_of(minima, n) / most;
    const float id = inverse(d), id_min = inverse(d_min);
    const float stored = put_half(at_d, d), stored_min = put_half(at_d + 2, d_min);
    for (uint g = 0; g < n; ++g) {
        scales[g] = nearest(scales[g] * id, 0.0, most);
        minima[g] = nearest(minima[g] * id_min, 0.0, most);
        const float inverse_scale = inverse(stored * scales[g]), offset = stored_min * minima[g];
        for (uint i = g * size; i < (g + 1) * size; ++i)
            x[i] = nearest((x[i] + offset) * inverse_scale, 0.0, steps - 1.0);
    }
}

// Six bits each of eight scales and minima in twelve bytes.
void put_scales_k4(const uint at) {
    for (uint g = 0; g < 4; ++g) {
        put(at + g, uint(scales[g]) | uint(scales[g + 4]) >> 4 << 6);
        put(at + 4 + g, uint(minima[g]) | uint(minima[g + 4]) >> 4 << 6);
        put(at + 8 + g, (uint(scales[g + 4]) & 15u) | (uint(minima[g + 4]) & 15u) << 4);
    }
}

void put_nibbles_k4(const uint at) {
    for (uint i = 0; i < 128; ++i) {
        const uint j = i / 32 * 64 + i % 32;
        put(at + i, (uint(x[j]) & 15u) | (uint(x[j + 32]) & 15u) << 4);
    }
}

// Two bits each of 256 numbers.
void put_twos(const uint at) {
    for (uint i = 0; i < 64; ++i) {
        const uint j = i / 32 * 128 + i % 32;
        put(at + i, (uint(x[j]) & 3u) | (uint(x[j + 32]) & 3u) << 2 |
                        (uint(x[j + 64]) & 3u) << 4 | (uint(x[j + 96]) & 3u) << 6);
    }
}

// Bit `bit` of the numbers, byte i has those of i, i + 32, ...
void put_high_bits(const uint at, const uint bit) {
    for (uint i = 0; i < 32; ++i) {
        uint bits = 0;
        for (uint g = 0; g < 8; ++g) bits |= (uint(x[32 * g + i]) >> bit & 1u) << g;
        put(at + i, bits);
    }
}

void pack_q2_K(const uint at) {
    quantise_ranges(16, 4.0, 15.0, at + 80);
    for (uint g = 0; g < 16; ++g) put(at + g, uint(scales[g]) | uint(minima[g]) << 4);
    put_twos(at + 16);
}

void pack_q4_K(const uint at) {
    quantise_ranges(32, 16.0, 63.0, at);
    put_scales_k4(at + 4);
    put_nibbles_k4(at + 16);
}

void pack_q5_K(const uint at) {
    quantise_ranges(32, 32.0, 63.0, at);
    put_scales_k4(at + 4);
    put_high_bits(at + 16, 4);
    put_nibbles_k4(at + 48);
}

// Signed scales of groups of 16, whole numbers from -limit on; turns the elements into numbers from
// 0 on.
void quantise_signed(const float half_, const float limit, const uint at_d) {
    float largest = 0.0;
    for (uint g = 0; g < 16; ++g) {
        scales[g] = extreme(16 * g, 16) / -half_;
        largest = abs(scales[g]) > abs(largest) ? scales[g] : largest;
    }
    const float id = -limit * inverse(largest);
    const float stored = put_half(at_d, inverse(id));
    for (uint g = 0; g < 16; ++g) {
        scales[g] = nearest(scales[g] * id, -limit, limit - 1.0);
        const float inverse_scale = inverse(stored * scales[g]);
        for (uint i = 16 * g; i < 16 * (g + 1); ++i)
            x[i] = nearest(x[i] * inverse_scale, -half_, half_ - 1.0) + half_;
    }
}

void pack_q3_K(const uint at) {
    quantise_signed(4.0, 32.0, at + 108);
    for (uint i = 0; i < 8; ++i)
        put(at + 96 + i,
            (uint(scales[i] + 32.0) & 15u) | (uint(scales[i + 8] + 32.0) & 15u) << 4);
    for (uint i = 0; i < 4; ++i) {
        uint high = 0;
        for (uint k = 0; k < 4; ++k) high |= uint(scales[i + 4 * k] + 32.0) >> 4 << (2 * k);
        put(at + 104 + i, high);
    }
    put_high_bits(at, 2);
    put_twos(at + 32);
}

void pack_q6_K(const uint at) {
    quantise_signed(32.0, 128.0, at + 208);
    for (uint g = 0; g < 16; ++g) put(at + 192 + g, uint(int(scales[g])) & 255u);
    for (uint i = 0; i < 128; ++i) {
        const uint j = i / 64 * 128 + i % 64;
        put(at + i, (uint(x[j]) & 15u) | (uint(x[j + 64]) & 15u) << 4);
    }
    for (uint i = 0; i < 64; ++i) {
        const uint j = i / 32 * 128 + i % 32;
        put(at + 128 + i, uint(x[j]) >> 4 | uint(x[j + 32]) >> 4 << 2 |
                              uint(x[j + 64]) >> 4 << 4 | uint(x[j + 96]) >> 4 << 6);
    }
}

// Six-bit scales of groups of 32 over the table of IQ4_NL.
void pack_iq4_xs(const uint at) {
    float largest = 0.0;
    for (uint g = 0; g < 8; ++g) {
        scales[g] = extreme(32 * g, 32) / -127.0;
        largest = abs(scales[g]) > abs(largest) ? scales[g] : largest;
    }
    const float id = -32.0 * inverse(largest);
    const float stored = put_half(at, inverse(id));
    uint high = 0;
    for (uint g = 0; g < 8; ++g) {
        scales[g] = nearest(scales[g] * id, -32.0, 31.0);
        const float inverse_scale = inverse(stored * scales[g]);
        for (uint i = 32 * g; i < 32 * (g + 1); ++i) x[i] = nearest_iq4(x[i] * inverse_scale);
        high |= uint(scales[g] + 32.0) >> 4 << (2 * g);
        put_nibbles(at + 8 + 16 * g, 32 * g);
    }
    put(at + 2, high & 255u);
    put(at + 3, high >> 8);
    for (uint i = 0; i < 4; ++i)
        put(at + 4 + i, (uint(scales[2 * i] + 32.0) & 15u) |
                            (uint(scales[2 * i + 1] + 32.0) & 15u) << 4);
}

// -1, 0, 1 times the largest magnitude, counted from 0.
void quantise_ternary(const uint at_d) {
    const float d = abs(extreme(0, 256)), id = inverse(d);
    put_half(at_d, d);
    for (uint i = 0; i < 256; ++i) x[i] = nearest(x[i] * id, -1.0, 1.0) + 1.0;
}

// n digits of base 3, `step` elements apart, as a fraction of 256.
uint ternary_byte(const uint from, const uint step, const uint n) {
    uint q = 0;
    for (uint k = 0; k < 5; ++k) q = 3 * q + (k < n ? uint(x[from + step * k]) : 0u);
    return (q * 256u + 242u) / 243u;
}

void pack_tq1_0(const uint at) {
    quantise_ternary(at + 52);
    for (uint i = 0; i < 32; ++i) put(at + i, ternary_byte(i, 32, 5));
    for (uint i = 0; i < 16; ++i) put(at + 32 + i, ternary_byte(160 + i, 16, 5));
    for (uint i = 0; i < 4; ++i) put(at + 48 + i, ternary_byte(240 + i, 4, 4));
}

void pack_tq2_0(const uint at) {
    quantise_ternary(at + 64);
    put_twos(at);
}

void pack(const uint at) {
    switch (DST_TYPE) {
    case TYPE_Q2_K: pack_q2_K(at); break;
    case TYPE_Q3_K: pack_q3_K(at); break;
    case TYPE_Q4_K: pack_q4_K(at); break;
    case TYPE_Q5_K: pack_q5_K(at); break;
    case TYPE_Q6_K: pack_q6_K(at); break;
    case TYPE_IQ4_XS: pack_iq4_xs(at); break;
    case TYPE_TQ1_0: pack_tq1_0(at); break;
    default: pack_tq2_0(at); break;
    }
}
