// SPDX-License-Identifier: MIT
// Two BF16 numbers to a lane, as they lie in a row, and the instruction that adds the products of
// both to a float: twice as many products as a multiply-add of floats has. Denormal numbers count
// as 0.
#ifndef CPU_BF16_PAIRS_H
#define CPU_BF16_PAIRS_H

#include "simd/bytes.h"

#if defined(__AVX512BF16__)
enum { CPU_BF16_PAIRS = 1 }; // whether the level has it

// Adds the products of BF16 pairs to the lanes' sums.
CPU_INLINE vf pairs_dot(vf sum, vf a, vf b) {
    return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

// The first 2 * LANES of x, rounded to nearest even.
CPU_INLINE vf pairs_round(const float *x) {
    return (vf)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + LANES), _mm512_loadu_ps(x));
}
#elif defined(CPU_NEON) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
enum { CPU_BF16_PAIRS = 1 };

CPU_INLINE vf pairs_dot(vf sum, vf a, vf b) {
    return (vf)vbfdotq_f32((float32x4_t)sum, (bfloat16x8_t)a, (bfloat16x8_t)b);
}

CPU_INLINE vf pairs_round(const float *x) {
    return (vf)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(vld1q_f32(x)), vld1q_f32(x + LANES));
}
#else
enum { CPU_BF16_PAIRS = 0 };

CPU_INLINE vf pairs_dot(vf sum, vf a, vf b) {
    (void)a, (void)b;
    return sum;
}

CPU_INLINE vf pairs_round(const float *x) {
    return vf_load(x);
}
#endif

// One pair in every lane: its bits are no float that arithmetic may touch.
CPU_INLINE vf pairs_set(const float *pair) {
    int32_t bits;
    memcpy(&bits, pair, sizeof(bits));
    return (vf)(bits - (vi){0});
}

#endif
