// SPDX-License-Identifier: MIT
// Elementary functions good to a few units in the last place, the same for every compiler: clang
// has no mathematical library for GPUs without NVIDIA's files. The polynomials of exp, log, tanh,
// sine and cosine are those of S. Moshier's Cephes library.
#ifndef GPU_KERNELS_GPU_MATH_H
#define GPU_KERNELS_GPU_MATH_H

#include "gpu.h"

GPU_FN float gpu_abs(float x) {
    return gpu_float(gpu_bits(x) & 0x7fffffffu);
}

#define GPU_INFINITY gpu_float(0x7f800000u)
#define GPU_NAN gpu_float(0x7fc00000u)

GPU_FN bool gpu_is_nan(const float x) {
    return (gpu_bits(x) & 0x7fffffffu) > 0x7f800000u;
}

// y times 2^n for -150 <= n <= 128, in two steps: for subnormal and for the largest results.
GPU_FN float gpu_scale_by_power(const float y, const int n) {
    const int low = n >> 1;
    return y * gpu_float((u32)(low + 127) << 23) * gpu_float((u32)(n - low + 127) << 23);
}

// x = n log 2 + r, |r| <= log(2) / 2: 2^n (1 + r + r^2 p(r)). At 89 the scaling has overflowed to
// infinity, so that more makes no difference.
GPU_FN float gpu_exp(const float x) {
    const float limited = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
    const float n = gpu_floor(limited * 1.44269504f + 0.5f);
    const float r = (limited - n * 0.693359375f) + n * 2.12194440e-4f; // log 2 in two parts
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const float y = gpu_scale_by_power((p * r) * r + r + 1.0f, (int)(n));
    return gpu_is_nan(x) ? x : x < -104.0f ? 0.0f : y;
}

// e^x - 1 without cancellation.
GPU_FN float gpu_expm1(const float x) {
    // Taylor's series up to x^8 / 8!; what is left out is less than 2^-26 of the result.
    if (gpu_abs(x) > 0.5f) return gpu_exp(x) - 1.0f;
    float p = 2.4801587e-5f;
    p = p * x + 1.9841270e-4f;
    p = p * x + 1.3888889e-3f;
    p = p * x + 8.3333333e-3f;
    p = p * x + 4.1666667e-2f;
    p = p * x + 1.6666667e-1f;
    p = p * x + 0.5f;
    return p * x * x + x;
}

// x = 2^e (1 + z) with 1 + z from sqrt(1/2) to sqrt(2), so that z is small on both sides of 1; log
// 2 in two parts. The bits of a subnormal, as a whole number, are x 2^149.
GPU_FN float gpu_log(const float x) {
    const u32 bits = gpu_bits(x);
    if (bits == 0u || bits == 0x80000000u) return -GPU_INFINITY;
    if (bits > 0x80000000u) return GPU_NAN;
    if (bits >= 0x7f800000u) return x;
    const bool tiny = bits < 0x00800000u;
    const u32 normal = tiny ? gpu_bits((float)(bits)) : bits;
    // The mantissa from sqrt(1/2) on.
    const u32 shifted = normal + (0x3f800000u - 0x3f3504f3u);
    const float e = (float)((int)(shifted >> 23) - 127 - (tiny ? 149 : 0));
    const float z = gpu_float((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 7.0376836292e-2f;
    p = p * z - 1.1514610310e-1f;
    p = p * z + 1.1676998740e-1f;
    p = p * z - 1.2420140846e-1f;
    p = p * z + 1.4249322787e-1f;
    p = p * z - 1.6668057665e-1f;
    p = p * z + 2.0000714765e-1f;
    p = p * z - 2.4999993993e-1f;
    p = p * z + 3.3333331174e-1f;
    const float tail = p * z * z * z - 2.12194440e-4f * e - 0.5f * z * z;
    return z + tail + 0.693359375f * e;
}

// log(1 + x) for x > -1: what rounding 1 + x loses is made good by the quotient.
GPU_FN float gpu_log1p(const float x) {
    const float u = 1.0f + x;
    const float d = u - 1.0f;
    if (d == 0.0f) return x;
    return gpu_log(u) * (x / d);
}

// An odd polynomial near 0, where 1 - 2 / (e^2x + 1), which is taken elsewhere, would cancel.
GPU_FN float gpu_tanh(const float x) {
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float large = 1.0f - 2.0f / (gpu_exp(2.0f * gpu_abs(x)) + 1.0f);
    return gpu_abs(x) < 0.625f ? p * z * x + x : x < 0.0f ? -large : large;
}

// 1 - erf(x), relative error below 2e-7f near 0 and as good as exp further away: Chebyshev's fit of
// Press et al., Numerical Recipes, chapter 6.2.
GPU_FN float gpu_erfc(const float x) {
    const float z = gpu_abs(x);
    const float t = 1.0f / (1.0f + 0.5f * z);
    float p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    const float y = t * gpu_exp(p - z * z);
    return x < 0.0f ? 2.0f - y : y;
}

GPU_FN float gpu_sigmoid(const float x) {
    return 1.0f / (1.0f + gpu_exp(-x));
}
GPU_FN float gpu_silu(const float x) {
    return x / (1.0f + gpu_exp(-x));
}
// A factor that GELU multiplies by 0 where it is low: minus infinity would make a NaN of that.
GPU_FN float gpu_finite_below(const float x) {
    return x < -1e30f ? -1e30f : x;
}
// x / 2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3).
GPU_FN float gpu_gelu(const float x) {
    return gpu_finite_below(x) /
           (1.0f + gpu_exp(-2.0f * 0.79788456080286535588f * x * (1.0f + 0.044715f * x * x)));
}
GPU_FN float gpu_gelu_quick(const float x) {
    return x / (1.0f + gpu_exp(-1.702f * x));
}
// x / 2 (1 + erf(x / sqrt 2)); erfc keeps the digits where erf is near -1.
GPU_FN float gpu_gelu_erf(const float x) {
    return 0.5f * gpu_finite_below(x) * gpu_erfc(-0.70710678118654752440f * x);
}

// --- sine and cosine -----------------------------------------------------------------------------

struct gpu_turn {
    float cosine, sine;
};

// Cosine and sine of r + quarter * pi / 2, |r| <= pi / 4.
GPU_FN gpu_turn gpu_quarter_turns(float r, u32 quarter) {
    const float z = r * r;
    const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    const float c =
        ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
        0.5f * z + 1.0f;
    gpu_turn t = {quarter & 1 ? -s : c, quarter & 1 ? c : s};
    if (quarter & 2) t = {-t.cosine, -t.sine};
    return t;
}

// Cosine and sine of a number of whole turns, from its fraction.
GPU_FN gpu_turn gpu_cos_sin_turns(float turns) {
    const float q = gpu_floor(turns * 4.0f + 0.5f);
    return gpu_quarter_turns((turns - q * 0.25f) * 6.28318530717958647693f, (u32)(int)q);
}

// 32 bits of 2 / pi from `bit` behind the point on; bit >= -13.
GPU_TABLE(u32, gpu_two_over_pi_words, 8) = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                            0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
GPU_FN u32 gpu_two_over_pi(int bit) {
    const u32 at = (u32)(bit + 32), word = at >> 5, shift = at & 31;
    const u32 low = word < 7 ? gpu_two_over_pi_words[word + 1] : 0;
    return shift == 0 ? gpu_two_over_pi_words[word]
                      : gpu_two_over_pi_words[word] << shift | low >> (32 - shift);
}

// Quarters of a turn in x >= 4096 and the rest: exact products of the mantissa with those bits of 2
// / pi that matter.
GPU_FN float gpu_reduce_large(float x, GPU_PRIVATE u32 *out_quarter) {
    const u32 bits = gpu_bits(x), mantissa = (bits & 0x007fffffu) | 0x00800000u;
    const int from = (int)(bits >> 23) - 150 - 2;
    const u64 low = (u64)mantissa * gpu_two_over_pi(from + 64),
              mid = (u64)mantissa * gpu_two_over_pi(from + 32);
    const u64 sum = mid + (low >> 32);
    const u32 high = mantissa * gpu_two_over_pi(from) + (u32)(sum >> 32);
    // The two highest bits count quarters; round to the nearest one.
    *out_quarter = ((high >> 29) + 1) >> 1;
    const int fraction = (int)(high << 2 | (u32)sum >> 30); // of a quarter, signed
    return (float)fraction * (1.57079632679489661923f / 4294967296.0f);
}

GPU_FN gpu_turn gpu_cos_sin(float x) {
    const float a = gpu_abs(x);
    u32 quarter;
    float r;
    if (!(a < GPU_INFINITY)) return {GPU_NAN, GPU_NAN};
    if (a >= 4096.0f) {
        r = gpu_reduce_large(a, &quarter);
    } else {
        const float n = gpu_floor(a * 0.63661977236758134308f + 0.5f);
        r = gpu_fma(n, -1.5703125f, a); // pi / 2 in three parts
        r = gpu_fma(n, -4.837512969970703125e-4f, r);
        r = gpu_fma(n, -7.54978995489188216e-8f, r);
        quarter = (u32)n;
    }
    const gpu_turn y = gpu_quarter_turns(r, quarter);
    return {y.cosine, x < 0.0f ? -y.sine : y.sine};
}

#endif
