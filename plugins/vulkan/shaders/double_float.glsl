// SPDX-License-Identifier: MIT
// Numbers as the sum of two floats (48 bits): angles that are many turns keep their fraction so.
#ifndef DOUBLE_FLOAT_GLSL
#define DOUBLE_FLOAT_GLSL

#include "shaders/common.glsl"
#include "shaders/math.glsl"

// x + y exactly.
vec2 two_sum(const float x, const float y) {
    precise float sum = x + y;
    precise float from_y = sum - x;
    precise float from_x = sum - from_y;
    precise float rest_y = y - from_y;
    precise float rest_x = x - from_x;
    precise float rest = rest_x + rest_y;
    return vec2(sum, rest);
}

// High half of the bits; the rest fits in the other half.
float high_half(const float x) { return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); }

// x y exactly, short of overflow and underflow.
vec2 two_product(const float x, const float y) {
    const float xh = high_half(x), yh = high_half(y);
    precise float xl = x - xh;
    precise float yl = y - yh;
    precise float product = x * y;
    precise float rest = xh * yh - product;
    rest = rest + xh * yl;
    rest = rest + xl * yh;
    rest = rest + xl * yl;
    return vec2(product, rest);
}

vec2 df_multiply(const vec2 a, const vec2 b) {
    const vec2 p = two_product(a.x, b.x);
    precise float rest = p.y + (a.x * b.y + a.y * b.x);
    return two_sum(p.x, rest);
}

vec2 df_multiply(const vec2 a, const float b) { return df_multiply(a, vec2(b, 0)); }

// One step of Newton's method after a division in single precision.
vec2 df_divide(const vec2 a, const float b) {
    const float q = a.x / b;
    const vec2 p = two_product(q, b);
    precise float rest = (a.x - p.x) - p.y + a.y;
    return two_sum(q, rest / b);
}

vec2 df_add(const vec2 a, const vec2 b) {
    const vec2 s = two_sum(a.x, b.x);
    precise float rest = s.y + (a.y + b.y);
    return two_sum(s.x, rest);
}

// The fraction, in [-0.5, 0.5] or so.
float df_fraction(const vec2 a) {
    precise float high = a.x - floor(a.x + 0.5);
    precise float low = a.y - floor(a.y + 0.5);
    precise float sum = high + low;
    return sum;
}

const vec2 DF_ONE_TURN = vec2(0.159154936671257019, 6.4206383167e-9); // 1 / (2 pi)

// f times the k-th power of a base whose powers 1, 2, 4, ... 128 are number(0) ... number(15).
vec2 df_times_power(const vec2 f, const uint k) {
    vec2 product = f, power = vec2(1, 0);
    for (uint bits = k, j = 0; bits != 0; bits >>= 1, ++j) {
        power = j < 8 ? uintBitsToFloat(uvec2(number(2 * j), number(2 * j + 1)))
                      : df_multiply(power, power);
        if ((bits & 1u) != 0) product = df_multiply(product, power);
    }
    return product;
}

#endif
