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

// e^x - 1; -1 below -17.4, infinity above 88.7, NaN for NaN.
static inline float cpu_expm1f(float x) {
    const float limited = x < -20.0f ? -20.0f : x > 89.0f ? 89.0f : x;
    // As in cpu_expf(), but e^r - 1 is kept apart from the 1 that would hide its low bits.
    const float shifted = limited * 1.44269504f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    const float r = (limited - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const float small = (p * r) * r + r;
    // 2^(n - 1), since 2^128 is no float.
    const float half = cpu_bits_float((cpu_float_bits(shifted) - 0x4B400000u + 126u) << 23);
    return (half * small + (half - 0.5f)) * 2.0f;
}

// log(1 + u) for 0 <= u <= 1: u and a polynomial for the rest, which has the smaller error.
static inline float cpu_log1p_unit(float u) {
    float p = 2.8738836905e-3f;
    p = p * u - 1.7512242570e-2f;
    p = p * u + 4.9931180535e-2f;
    p = p * u - 9.2029632009e-2f;
    p = p * u + 1.3071328234e-1f;
    p = p * u - 1.6378508851e-1f;
    p = p * u + 1.9959356162e-1f;
    p = p * u - 2.4997024127e-1f;
    p = p * u + 3.3333247560e-1f;
    p = p * u - 4.9999999588e-1f;
    return u + u * (u * p);
}

// log(1 + e^x), also where e^x overflows.
static inline float cpu_softplusf(float x) {
    return (x > 0.0f ? x : 0.0f) + cpu_log1p_unit(cpu_expf(-fabsf(x)));
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
// x. Of minus infinity it is 0: infinity is not divided by infinity.
static inline float cpu_geluf(float x) {
    const float u = 0.79788456080286535588f * x * (1.0f + 0.044715f * x * x);
    const float finite = x < -1e30f ? -1e30f : x;
    return finite / (1.0f + cpu_expf(-2.0f * u));
}

static inline float cpu_gelu_quickf(float x) {
    return x / (1.0f + cpu_expf(-1.702f * x));
}

// 0.5 erfc(a / sqrt 2) for 0 <= a: e^-y^2 g(t) / (1 + 2 y), where y = a / sqrt 2, t = (y - 3) / (y
// + 3) and g is nearly constant (Shepherd and Laframboise, 1981), here a polynomial of degree 10 up
// to y = 15.
static inline float cpu_half_erfcf(float a) {
    const float t = (a - 4.24264069f) / (a + 4.24264069f);
    float g = -2.321491633e-04f;
    g = g * t - 6.919898292e-04f;
    g = g * t + 2.038871700e-03f;
    g = g * t + 2.520521962e-03f;
    g = g * t - 2.383281640e-02f;
    g = g * t + 6.830241064e-02f;
    g = g * t - 1.192628461e-01f;
    g = g * t + 1.296463542e-01f;
    g = g * t - 4.756297630e-02f;
    g = g * t - 1.356211536e-01f;
    g = g * t + 1.253008065e+00f;
    return 0.5f * g * cpu_expf(-0.5f * a * a) / (1.41421356f * a + 1.0f);
}

// 0.5 x (1 + erf(x / sqrt 2)): near 0 by erf's series, else by erfc, which has no cancellation for
// negative x. The exponent's rounding costs x^2 units in the last place.
static inline float cpu_gelu_erff(float x) {
    const float z = x * x;
    float p = -4.122667415e-08f;
    p = p * z + 6.659693516e-07f;
    p = p * z - 9.444656260e-06f;
    p = p * z + 1.154346876e-04f;
    p = p * z - 1.187328215e-03f;
    p = p * z + 9.973557010e-03f;
    p = p * z - 6.649038007e-02f;
    p = p * z + 3.989422804e-01f;
    const float small = x * (p * x + 0.5f);
    const float a = fabsf(x) > 20.0f ? 20.0f : fabsf(x); // infinity times 0 is no number
    const float part = a * cpu_half_erfcf(a);
    const float large = x < 0.0f ? -part : x - part;
    return a < 1.0f ? small : large;
}

// Cosine and sine of `rest` and `quarter` quarters of a turn; |rest| <= pi / 4, quarter 0 to 3.
static inline void cpu_cos_sin(float rest, int32_t quarter, float *cosine, float *sine) {
    const float z = rest * rest;
    const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z;
    const float c = ((2.443315712e-5f * z - 1.388731625e-3f) * z + 4.166664568e-2f) * z - 0.5f;
    const float of_sine = s * rest + rest, of_cosine = c * z + 1.0f;
    const bool is_odd = (quarter & 1) != 0;
    const float x = is_odd ? of_sine : of_cosine, y = is_odd ? of_cosine : of_sine;
    *cosine = ((quarter + 1) & 2) != 0 ? -x : x;
    *sine = (quarter & 2) != 0 ? -y : y;
}

#endif
