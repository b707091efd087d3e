// SPDX-License-Identifier: MIT
// Transcendental functions in single precision, free of branches, so that loops over them become
// vectors. Errors are below 2 units in the last place unless said.
#ifndef CPU_VMATH_H
#define CPU_VMATH_H

#include <math.h>

#include "simd/convert.h"

// y times 2^n for -150 <= n <= 128: in two steps, so that subnormal results and the largest ones
// come out right.
static inline float cpu_scale_by_power(float y, int32_t n) {
    const int32_t half = n >> 1;
    const float first = cpu_bits_float((uint32_t)(half + 127) << 23);
    const float second = cpu_bits_float((uint32_t)(n - half + 127) << 23);
    return y * first * second;
}

// e^x; 0 below -104, infinity above 88.7, NaN for NaN.
static inline float cpu_expf(float x) {
    const float limited = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
    // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    const float shifted = limited * 1.44269504f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    // log 2 in two parts, the first short enough for exact products.
    const float r = (limited - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const float y = (p * r) * r + r + 1.0f;
    return cpu_scale_by_power(y, (int32_t)(cpu_float_bits(shifted) - 0x4B400000u));
}

// tanh x.
static inline float cpu_tanhf(float x) {
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float small = p * z * x + x;
    const float large = 1.0f - 2.0f / (cpu_expf(2.0f * fabsf(x)) + 1.0f);
    return fabsf(x) < 0.625f ? small : copysignf(large, x);
}

// 1 / (1 + e^-x).
static inline float cpu_sigmoidf(float x) {
    return 1.0f / (1.0f + cpu_expf(-x));
}

// x / (1 + e^-x), also where e^-x overflows.
static inline float cpu_siluf(float x) {
    return x / (1.0f + cpu_expf(-x));
}

// 0.5 x (1 + tanh(sqrt(2/pi) x (1 + 0.044715 x^2))), written without the cancellation for negative
// x.
static inline float cpu_geluf(float x) {
    const float u = 0.79788456080286535588f * x * (1.0f + 0.044715f * x * x);
    return x / (1.0f + cpu_expf(-2.0f * u));
}

static inline float cpu_gelu_quickf(float x) {
    return x / (1.0f + cpu_expf(-1.702f * x));
}

// 0.5 x (1 + erf(x / sqrt 2)).
static inline float cpu_gelu_erff(float x) {
    return 0.5f * x * erfcf(-0.70710678118654752440f * x);
}

#endif
