// SPDX-License-Identifier: MIT
// Products of numbers of 16 bits, of which two or more are added to a lane.
#ifndef CPU_WORD_PRODUCTS_H
#define CPU_WORD_PRODUCTS_H

#include "simd/bytes.h"

enum { WORDS = 2 * LANES };

typedef int16_t vw __attribute__((vector_size(2 * WORDS)));

CPU_INLINE vw vw_load(const int16_t *p) {
    vw v;
    memcpy(&v, p, sizeof(v));
    return v;
}

// As many bytes with sign, widened.
CPU_INLINE vw vw_from_i8(const void *p) {
#if defined(__AVX512BW__)
    return (vw)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p));
#elif defined(__AVX2__)
    return (vw)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
#elif defined(__SSE4_1__)
    return (vw)_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p));
#elif defined(CPU_NEON)
    return (vw)vmovl_s8(vld1_s8(p));
#else
    const int8_t *bytes = p;
    vw v;
    for (int i = 0; i < WORDS; ++i)
        v[i] = bytes[i];
    return v;
#endif
}

// Adds all products of a and b to lanes of `sum`; which ones to which lane is the level's.
CPU_INLINE vi vw_add_products(vi sum, vw a, vw b) {
#if defined(__AVX512VNNI__)
    return (vi)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined(__AVX512BW__)
    return sum + (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return sum + (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE4_1__)
    return sum + (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined(CPU_NEON)
    const int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
    const int32x4_t low = vmlal_s16((int32x4_t)sum, vget_low_s16(x), vget_low_s16(y));
    return (vi)vmlal_s16(low, vget_high_s16(x), vget_high_s16(y));
#else
    for (int i = 0; i < WORDS; ++i)
        sum[i / 2] += a[i] * b[i];
    return sum;
#endif
}

#endif
