// SPDX-License-Identifier: MIT
// Dot products of bytes, four to a lane, of rows that are opened to memory: by instructions of x86,
// as AArch64 multiplies all rows out of registers.
#ifndef CPU_DOT_BYTES_H
#define CPU_DOT_BYTES_H

#include "simd/bytes.h"

// Lanes: no more than hold 32 bytes, which is what blocks are opened in.
enum { DOTS = LANES < 8 ? LANES : 8, DOT_BYTES = 4 * DOTS };

typedef int32_t vd __attribute__((vector_size(4 * DOTS)));
typedef float vdf __attribute__((vector_size(4 * DOTS)));

CPU_INLINE vdf vdf_load(const float *p) {
    vdf v;
    memcpy(&v, p, sizeof(v));
    return v;
}

CPU_INLINE vdf vdf_set(float x) {
    return x - (vdf){0};
}

// dot_add() of w and x to dot_start() of x, or to such a sum, adds products of four of each to the
// lane; w is any byte, x at least -127. Exact.
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
// An instruction multiplies bytes without sign with such that have one: 128 is added to w.
CPU_INLINE vd dot_start(const int8_t *x) {
    const __m256i numbers = _mm256_loadu_si256((const __m256i *)(const void *)x);
    const __m256i zero = _mm256_setzero_si256();
    return (vd)_mm256_sub_epi32(zero, _mm256_dpbusd_epi32(zero, _mm256_set1_epi8(-128), numbers));
}

// The sign bit of w is flipped, which adds 128 to it; dot_start() compensates for that.
CPU_INLINE vd dot_add(vd sum, const int8_t *w, const int8_t *x) {
    const __m256i numbers = _mm256_loadu_si256((const __m256i *)(const void *)w);
    return (vd)_mm256_dpbusd_epi32((__m256i)sum, _mm256_xor_si256(numbers, _mm256_set1_epi8(-128)),
                                   _mm256_loadu_si256((const __m256i *)(const void *)x));
}
#else
CPU_INLINE vd dot_start(const int8_t *x) {
    (void)x;
    return (vd){0};
}

#if defined(__AVX2__)
// Signs move from w to x. Two products, at most 128 * 127 each, fit 16 bits.
CPU_INLINE vd dot_add(vd sum, const int8_t *w, const int8_t *x) {
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)w);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)x);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
    return sum + (vd)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#elif defined(__SSE4_1__)
CPU_INLINE vd dot_add(vd sum, const int8_t *w, const int8_t *x) {
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)w);
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)x);
    const __m128i pairs = _mm_maddubs_epi16(_mm_abs_epi8(a), _mm_sign_epi8(b, a));
    return sum + (vd)_mm_madd_epi16(pairs, _mm_set1_epi16(1));
}
#else
CPU_INLINE vd dot_add(vd sum, const int8_t *w, const int8_t *x) {
    for (int i = 0; i < DOT_BYTES; ++i)
        sum[i / 4] += w[i] * x[i];
    return sum;
}
#endif
#endif

// Pairs of lanes half the vector apart are added first.
CPU_INLINE float vdf_sum(vdf v) {
    float lane[DOTS];
    memcpy(lane, &v, sizeof(v));
    CPU_UNROLLED
    for (int n = DOTS / 2; n > 0; n /= 2) {
        for (int i = 0; i < n; ++i)
            lane[i] += lane[i + n];
    }
    return lane[0];
}

#endif
