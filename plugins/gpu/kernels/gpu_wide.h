// SPDX-License-Identifier: MIT
// Sums of two floats, of 48 bits: after T. J. Dekker, A floating-point technique for extending the
// available precision (1971). Infinities and NaN are those of the high part.
#ifndef GPU_KERNELS_GPU_WIDE_H
#define GPU_KERNELS_GPU_WIDE_H

#include "gpu.h"

// high + low, where the result's low part is what rounding loses; the second: |high| >= |low|.
GPU_FN gpu_wide gpu_two_sum(float high, float low) {
    const float sum = high + low, other = sum - high;
    const float rest = (high - (sum - other)) + (low - other);
    return {sum, (gpu_bits(sum) & 0x7f800000u) == 0x7f800000u ? 0.0f : rest};
}
GPU_FN gpu_wide gpu_quick_sum(float high, float low) {
    const float sum = high + low, rest = low - (sum - high);
    return {sum, (gpu_bits(sum) & 0x7f800000u) == 0x7f800000u ? 0.0f : rest};
}

// Whole numbers up to 2^48 are exact.
GPU_FN gpu_wide gpu_wide_of(i64 value) {
    const float high = (float)value;
    return {high, (float)(value - (i64)high)};
}
GPU_FN gpu_wide gpu_wide_neg(gpu_wide a) {
    return {-a.high, -a.low};
}
GPU_FN gpu_wide gpu_wide_add(gpu_wide a, gpu_wide b) {
    const gpu_wide sum = gpu_two_sum(a.high, b.high), rest = gpu_two_sum(a.low, b.low);
    const gpu_wide once = gpu_quick_sum(sum.high, sum.low + rest.high);
    return gpu_quick_sum(once.high, once.low + rest.low);
}
// The fma gives the exact error of the product of the high parts; that of the low ones is below the
// last bit.
GPU_FN gpu_wide gpu_wide_mul(gpu_wide a, gpu_wide b) {
    const float high = gpu_mul(a.high, b.high);
    const float rest = gpu_fma(a.high, b.high, -high);
    return gpu_quick_sum(high, gpu_fma(a.high, b.low, gpu_fma(a.low, b.high, rest)));
}
// A quotient of floats, then one step of correction by what is left of a.
GPU_FN gpu_wide gpu_wide_div(gpu_wide a, gpu_wide b) {
    const float first = a.high / b.high;
    const gpu_wide once = {first, 0.0f};
    const gpu_wide rest = gpu_wide_add(a, gpu_wide_neg(gpu_wide_mul(b, once)));
    return gpu_quick_sum(first, rest.high / b.high);
}
// What is left of it without the nearest whole number: -1/2 to 1/2.
GPU_FN float gpu_wide_fraction(gpu_wide a) {
    const float part = (a.high - gpu_floor(a.high + 0.5f)) + a.low;
    return part - gpu_floor(part + 0.5f);
}

#endif
