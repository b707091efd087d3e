#version 450
// SPDX-License-Identifier: MIT
// Encoding to types with blocks of 256 elements (Q2_K to Q6_K, IQ4_XS, TQ1_0, TQ2_0), for cpy
// and set_rows: an invocation per block of the result (pack_block.glsl).
#define BLOCK 256
#include "ops/copy/pack_block.glsl"

#include "ops/copy/pack_range.glsl"

// Six bits each of eight scales and minima in twelve bytes.
void put_scales_k4(const uint at) {
    for (uint g = 0; g < 4; ++g) {
        put(at + g, uint(scales[g]) | uint(scales[g + 4]) >> 4 << 6);
        put(at + 4 + g, uint(minima[g]) | uint(minima[g + 4]) >> 4 << 6);
        put(at + 8 + g, (uint(scales[g + 4]) & 15u) | (uint(minima[g + 4]) & 15u) << 4);
    }
}

// Nibbles j and j + 32 of each 64 share a byte.
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

// 16 bytes of scales and minima, 64 of quants, then d and dmin.
void pack_q2_K(const uint at) {
    encode_ranges(16, 3.0, 15.0, at + 80);
    for (uint g = 0; g < 16; ++g) put(at + g, uint(scales[g]) | uint(minima[g]) << 4);
    put_twos(at + 16);
}

// d and dmin, 12 bytes of scales and minima, 128 of quants.
void pack_q4_K(const uint at) {
    encode_ranges(32, 15.0, 63.0, at);
    put_scales_k4(at + 4);
    put_nibbles_k4(at + 16);
}

// d and dmin, 12 bytes of scales and minima, 32 of fifth bits, 128 of low ones.
void pack_q5_K(const uint at) {
    encode_ranges(32, 31.0, 63.0, at);
    put_scales_k4(at + 4);
    put_high_bits(at + 16, 4);
    put_nibbles_k4(at + 48);
}

// The largest of n scales by magnitude, the first of equals.
float extreme_scale(const uint n) {
    float largest = 0.0;
    for (uint g = 0; g < n; ++g) largest = abs(scales[g]) > abs(largest) ? scales[g] : largest;
    return largest;
}

// Quants -4 .. 3 of 16 elements, refined one element at a time; returns their scale.
float refine_q3(const uint from) {
    const float largest = extreme(from, 16);
    if (abs(largest) < TINY) return 0.0;
    precise float id = -4.0 / largest, xl = 0.0, l2 = 0.0;
    for (uint i = 0; i < 16; ++i) {
        const float v = x[from + i];
        precise float scaled = id * v;
        const float l = nearest_even(scaled, -4.0, 3.0);
        precise float w = v * v;
        quants[i] = l;
        xl += w * v * l;
        l2 += w * (l * l);
    }
    bool changed = true;
    for (uint pass = 0; pass < 5 && changed; ++pass) {
        changed = false;
        for (uint i = 0; i < 16; ++i) {
            const float v = x[from + i], q = quants[i];
            precise float w = v * v;
            precise float next_xl = xl - w * v * q, next_l2 = l2 - w * (q * q);
            if (!(next_xl > 0.0)) continue;
            precise float scaled = v * next_l2 / next_xl;
            const float l = nearest_even(scaled, -4.0, 3.0);
            if (l == q) continue;
            next_xl += w * v * l;
            next_l2 += w * (l * l);
            precise float gain = next_xl * next_xl * l2, least = xl * xl * next_l2;
            if (next_l2 > 0.0 && gain > least) {
                quants[i] = l;
                xl = next_xl;
                l2 = next_l2;
                changed = true;
            }
        }
    }
    precise float scale = xl / l2;
    return l2 > 0.0 ? scale : 0.0;
}

// A group whose scale is 0 keeps the quants of its own search, which are made again here.
void quantise_q3(const uint from, const float d) {
    if (d == 0.0) {
        for (uint i = 0; i < 16; ++i) quants[i] = -4.0;
        refine_q3(from);
    }
    for (uint i = from; i < from + 16; ++i) {
        precise float scaled = x[i] / d;
        x[i] = (d == 0.0 ? quants[i - from] : nearest_even(scaled, -4.0, 3.0)) + 4.0;
    }
}

// 32 bytes of third bits, 64 of low ones, 12 of signed six-bit scales, d. Each group's scale is
// found alone; then all are made multiples of d, and the quants are rounded again.
void pack_q3_K(const uint at) {
    for (uint g = 0; g < 16; ++g) scales[g] = refine_q3(16 * g);
    const float largest = extreme_scale(16);
    precise float id = -32.0 / largest;
    const float stored = put_half(at + 108, largest != 0.0 ? inverse(id) : 0.0);
    for (uint g = 0; g < 16; ++g) {
        precise float scaled = id * scales[g];
        scales[g] = largest != 0.0 ? nearest_even(scaled, -32.0, 31.0) : -32.0;
        precise float d = stored * scales[g];
        quantise_q3(16 * g, d);
    }
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

// The best of 20 scales of 16 elements for quants -32 .. 31, by least squares; `best_inverse` is
// what brings the elements to the quants.
float search_q6(const uint from, out float best_inverse) {
    const float largest = extreme(from, 16);
    best_inverse = 0.0;
    if (abs(largest) < TINY) return 0.0;
    float scale = 0.0, gain = 0.0;
    // What brings the largest magnitude to -32 comes first.
    for (uint n = 0; n < 20; ++n) {
        const uint k = n == 0 ? 10 : n;
        precise float trial = -(32.0 + 0.1 * float(int(k) - 10)) / largest;
        precise float xl = 0.0, l2 = 0.0;
        for (uint i = from; i < from + 16; ++i) {
            precise float scaled = trial * x[i];
            const float l = nearest_even(scaled, -32.0, 31.0);
            precise float w = x[i] * x[i];
            xl += w * x[i] * l;
            l2 += w * l * l;
        }
        precise float square = xl * xl, least = gain * l2;
        if (n == 0 ? l2 != 0.0 : l2 > 0.0 && square > least) {
            scale = xl / l2;
            precise float found = scale * xl;
            gain = found;
            best_inverse = trial;
        }
        if (n == 0) best_inverse = trial;
    }
    return scale;
}

// 128 bytes of low four bits, 64 of high two, 16 signed scales, d.
void pack_q6_K(const uint at) {
    for (uint g = 0; g < 16; ++g) scales[g] = search_q6(16 * g, minima[g]);
    const float largest = extreme_scale(16);
    precise float id = -128.0 / largest;
    const bool any = abs(largest) >= TINY;
    const float stored = put_half(at + 208, any ? 1.0 / id : 0.0);
    for (uint g = 0; g < 16; ++g) {
        precise float scaled_scale = id * scales[g];
        const float scale = any ? nearest_even(scaled_scale, -128.0, 127.0) : 0.0;
        precise float d = stored * scale;
        put(at + 192 + g, uint(int(scale)) & 255u);
        for (uint i = 16 * g; i < 16 * (g + 1); ++i) {
            precise float by_scale = x[i] / d, by_search = minima[g] * x[i];
            const float q = nearest_even(d != 0.0 ? by_scale : by_search, -32.0, 31.0);
            x[i] = any && minima[g] != 0.0 ? q + 32.0 : 0.0;
        }
    }
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
    for (uint g = 0; g < 8; ++g) scales[g] = search_iq4(32 * g);
    precise float d = -extreme_scale(8) / 32.0;
    const float id = inverse(d);
    uint high = 0;
    put_half(at, d);
    for (uint g = 0; g < 8; ++g) {
        precise float scaled = id * scales[g];
        scales[g] = nearest_even(scaled, -32.0, 31.0);
        precise float scale = d * scales[g];
        index_iq4(32 * g, inverse(scale));
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
    const float d = largest_magnitude(0, 256), id = inverse(d);
    put_half(at_d, d);
    for (uint i = 0; i < 256; ++i) {
        precise float scaled = x[i] * id;
        x[i] = nearest_away(scaled, -1.0, 1.0) + 1.0;
    }
}

// n digits of base 3, `step` elements apart, as a fraction of 256.
uint ternary_byte(const uint from, const uint step, const uint n) {
    uint q = 0;
    for (uint k = 0; k < 5; ++k) q = 3 * q + (k < n ? uint(x[from + step * k]) : 0u);
    return (q * 256u + 242u) / 243u;
}

// Five ternary digits per byte in 48 bytes, four in the last four, then the scale.
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

// The type is a constant of the pipeline: only one branch is compiled.
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
