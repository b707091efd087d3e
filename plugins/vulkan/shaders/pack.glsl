// SPDX-License-Identifier: MIT
// Encodes the BLOCK numbers that the including shader puts into `x` as a block of a type at byte
// address `at` of dst. Scales come from the extremes, without search.
#ifndef PACK_GLSL
#define PACK_GLSL

float x[BLOCK];

void put(const uint at, const uint byte) { dst_u8[at] = uint8_t(byte); }
// A scale; answers it as it will be read.
float put_half(const uint at, const float value) {
    const uint bits = f32_to_f16(value);
    put(at, bits & 255u);
    put(at + 1, bits >> 8);
    return unpackHalf2x16(bits).x;
}

float inverse(const float d) { return d == 0.0 ? 0.0 : 1.0 / d; }
// To the nearest whole number in a range.
float nearest(const float value, const float low, const float high) {
    const float rounded = floor(value + 0.5);
    return rounded > low ? (rounded < high ? rounded : high) : low;
}

// The element of largest magnitude, with its sign.
float extreme(const uint from, const uint n) {
    float largest = 0.0;
    for (uint i = from; i < from + n; ++i)
        largest = abs(x[i]) > abs(largest) ? x[i] : largest;
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

// Index of the nearest value of IQ4_NL's table; the numbers lie half way between its values.
float nearest_iq4(const float v) {
    const float between[15] = float[15](-115.5, -93.5, -74.0, -57.0, -42.0, -28.5, -16.0, -4.5, 7.0,
                                        19.0, 31.5, 45.5, 61.0, 79.0, 101.0);
    float index = 0.0;
    for (uint i = 0; i < 15; ++i) index += v > between[i] ? 1.0 : 0.0;
    return index;
}

float iq4_value(const float index) { return float(unpack_table(UNPACK_IQ4, ivec4(int(index))).x); }

// Turns 32 elements into indices of the table; answers the scale that then fits best.
float index_iq4(const uint from) {
    const float first = inverse(extreme(from, 32) / -127.0);
    float products = 0.0, squares = 0.0;
    for (uint i = from; i < from + 32; ++i) {
        const float index = nearest_iq4(x[i] * first), value = iq4_value(index);
        const float weight = x[i] * x[i];
        products += weight * value * x[i];
        squares += weight * value * value;
        x[i] = index;
    }
    return squares > 0.0 ? products / squares : 0.0;
}

// Index of the nearest value of the table of four-bit floats, doubled.
float nearest_fp4(const float v) {
    const float between[7] = float[7](0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0);
    float index = v < 0.0 ? 8.0 : 0.0;
    for (uint i = 0; i < 7; ++i) index += abs(v) > between[i] ? 1.0 : 0.0;
    return index;
}

// Nibbles of 32 indices in x: low ones are the first 16.
void put_nibbles(const uint at, const uint from) {
    for (uint i = 0; i < 16; ++i) put(at + i, uint(x[from + i]) | uint(x[from + 16 + i]) << 4);
}

#endif
