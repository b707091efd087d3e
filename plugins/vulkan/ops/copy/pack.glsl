// SPDX-License-Identifier: MIT
// Encodes the BLOCK numbers that the including shader puts into `x` as a block of a type at byte
// address `at` of dst. The arithmetic is that of the CPU's encoders (core/quant/encode_*.c) without
// importance, in the same order and rounded alike, so that blocks come out the same; `precise` keeps
// compilers from contracting it.
#ifndef PACK_GLSL
#define PACK_GLSL

float x[BLOCK];

const float TINY = 1e-15;

// Stores a byte of a block.
void put(const uint at, const uint byte) { dst_u8[at] = uint8_t(byte); }
// A scale; returns it as it will be read.
float put_half(const uint at, const float value) {
    const uint bits = f32_to_f16(value);
    put(at, bits & 255u);
    put(at + 1, bits >> 8);
    return unpackHalf2x16(bits).x;
}

float inverse(const float d) {
    precise float result = 1.0 / d;
    return d == 0.0 ? 0.0 : result;
}

// Kept in [low, high].
float limited(const float value, const float low, const float high) {
    const float raised = value > low ? value : low;
    return raised < high ? raised : high;
}
// To the nearest whole number in a range, ties to even.
float nearest_even(const float value, const float low, const float high) {
    return roundEven(limited(value, low, high));
}
// Halves away from zero.
float nearest_away(const float value, const float low, const float high) {
    const float kept = limited(value, low, high);
    precise float moved = kept + (kept < 0.0 ? -0.49999997 : 0.49999997);
    return trunc(moved);
}

// The largest magnitude.
float largest_magnitude(const uint from, const uint n) {
    uint largest = 0;
    for (uint i = from; i < from + n; ++i) largest = max(largest, floatBitsToUint(x[i]) & 0x7fffffffu);
    return uintBitsToFloat(largest);
}

// The element of largest magnitude, with its sign; of equal ones the first.
float extreme(const uint from, const uint n) {
    const float largest = largest_magnitude(from, n);
    for (uint i = from; i < from + n; ++i) {
        if (largest > 0.0 && abs(x[i]) == largest) return x[i];
    }
    return largest;
}

// Smallest and largest element.
vec2 range_of(const uint from, const uint n) {
    vec2 range = vec2(x[from]);
    for (uint i = from + 1; i < from + n; ++i) {
        range.x = x[i] < range.x ? x[i] : range.x;
        range.y = x[i] > range.y ? x[i] : range.y;
    }
    return range;
}

// --- IQ4_NL --------------------------------------------------------------------------------------

// Index of the nearest value of IQ4_NL's table, of two equally near ones the higher; the numbers
// lie half way between its values.
float nearest_iq4(const float v) {
    const float between[15] = float[15](-115.5, -93.5, -74.0, -57.0, -42.0, -28.5, -16.0, -4.5, 7.0,
                                        19.0, 31.5, 45.5, 61.0, 79.0, 101.0);
    float index = 0.0;
    for (uint i = 0; i < 15; ++i) index += v >= between[i] ? 1.0 : 0.0;
    return index;
}

float iq4_value(const float index) { return float(unpack_table(UNPACK_IQ4, ivec4(int(index))).x); }

// <w x, l> and <w l, l> of 32 elements with the values nearest to x * inverse_scale, w = x^2.
vec2 sum_iq4(const uint from, const float inverse_scale) {
    precise float xl = 0.0, l2 = 0.0;
    for (uint i = from; i < from + 32; ++i) {
        precise float scaled = x[i] * inverse_scale;
        const float l = iq4_value(nearest_iq4(scaled));
        precise float wl = (x[i] * x[i]) * l;
        l2 += wl * l;
        xl += wl * x[i];
    }
    return vec2(xl, l2);
}

// The best of 16 scales of 32 elements, by least squares.
float search_iq4(const uint from) {
    const float largest = extreme(from, 32);
    if (abs(largest) < TINY) return 0.0;
    float d = 0.0, best = 0.0;
    for (uint k = 0; k < 16; ++k) {
        precise float trial = k == 0 ? inverse(-largest / -127.0)
                                     : (float(int(k) - 8) + -127.0) / largest;
        const vec2 sums = sum_iq4(from, trial);
        precise float square = sums.x * sums.x, least = best * sums.y;
        if (sums.y > 0.0 && (k == 0 || square > least)) {
            d = sums.x / sums.y;
            precise float gain = d * sums.x;
            best = gain;
        }
    }
    return d;
}

// Turns 32 elements into indices of the table.
void index_iq4(const uint from, const float inverse_scale) {
    for (uint i = from; i < from + 32; ++i) {
        precise float scaled = inverse_scale * x[i];
        x[i] = nearest_iq4(scaled);
    }
}

// --- four-bit floats -----------------------------------------------------------------------------

// Index of the value of the table of four-bit floats, doubled, that times d is nearest to v; of two
// equally near ones the smaller.
float nearest_fp4(const float v, const float d) {
    const float values[8] = float[8](0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0);
    float index = 0.0;
    for (uint i = 1; i < 8; ++i) {
        precise float here = values[i] * d - abs(v), before = values[i - 1] * d - abs(v);
        index += abs(here) < abs(before) ? 1.0 : 0.0;
    }
    return v < 0.0 && index > 0.0 ? index + 8.0 : index;
}

// Nibbles of 32 indices in x: low ones are the first 16.
void put_nibbles(const uint at, const uint from) {
    for (uint i = 0; i < 16; ++i) put(at + i, uint(x[from + i]) | uint(x[from + 16 + i]) << 4);
}

#endif
