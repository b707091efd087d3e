// SPDX-License-Identifier: MIT
// AVX-512, VNNI and BF16 by SIMDe, for the levels that need them on processors that lack them: the
// build option cpu_simulated includes this before every file of such a level, which is compiled for
// AVX2. What the intrinsics give is SIMDe's; what the compiler makes of them is not tried. Written
// here is what SIMDe 0.7.4 lacks or computes in another way.
//
// Whoever uses an intrinsic that neither has gets an error of the compiler that names it.
#ifndef TEST_CPU_SIMULATED_AVX512_H
#define TEST_CPU_SIMULATED_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_NO_INLINE
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <simde/x86/avx512.h>
#pragma GCC diagnostic pop

#define __AVX512F__ 1
#define __AVX512CD__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1
#if CPU_SIMULATED_VNNI
#define __AVX512VNNI__ 1
#define __AVX512BF16__ 1
#endif

#define SIMULATED static inline __attribute__((always_inline, unused))

typedef int32_t simulated_words __attribute__((vector_size(64)));
typedef int16_t simulated_shorts __attribute__((vector_size(32)));
typedef uint16_t simulated_unsigned_shorts __attribute__((vector_size(32)));
typedef int8_t simulated_bytes __attribute__((vector_size(16)));
typedef uint8_t simulated_unsigned_bytes __attribute__((vector_size(16)));
typedef float simulated_floats __attribute__((vector_size(64)));

SIMULATED __m512 simulated_cvtepi32_ps(__m512i v) {
    return (__m512) __builtin_convertvector((simulated_words)v, simulated_floats);
}

SIMULATED __m256i simulated_cvtepi32_epi16(__m512i v) {
    return (__m256i) __builtin_convertvector((simulated_words)v, simulated_shorts);
}

SIMULATED __m512i simulated_cvtepi8_epi32(__m128i v) {
    return (__m512i) __builtin_convertvector((simulated_bytes)v, simulated_words);
}

SIMULATED __m512i simulated_cvtepu8_epi32(__m128i v) {
    return (__m512i) __builtin_convertvector((simulated_unsigned_bytes)v, simulated_words);
}

SIMULATED __m512i simulated_cvtepu16_epi32(__m256i v) {
    return (__m512i) __builtin_convertvector((simulated_unsigned_shorts)v, simulated_words);
}

SIMULATED __m512 simulated_cvtph_ps(__m256i v) {
    const __m512 low = _mm512_castps256_ps512(_mm256_cvtph_ps(_mm256_castsi256_si128(v)));
    return _mm512_insertf32x8(low, _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1)), 1);
}

SIMULATED __m512 simulated_zextps256_ps512(__m256 v) {
    return _mm512_insertf32x8(_mm512_setzero_ps(), v, 0);
}

SIMULATED __mmask16 simulated_cmpneq_epi32_mask(__m512i a, __m512i b) {
    const simulated_words differ = (simulated_words)a != (simulated_words)b;
    __mmask16 mask = 0;
    for (int i = 0; i < 16; ++i)
        mask |= (__mmask16)((differ[i] & 1) << i);
    return mask;
}

SIMULATED __mmask8 simulated_cmpgt_epi32_mask(__m128i a, __m128i b) {
    return (__mmask8)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(a, b)));
}

SIMULATED __m512i simulated_maskz_slli_epi32(__mmask16 mask, __m512i v, unsigned count) {
    if (count > 31) return _mm512_setzero_si512();
    simulated_words shifted = (simulated_words)v << (int)count;
    for (int i = 0; i < 16; ++i)
        shifted[i] = mask >> i & 1 ? shifted[i] : 0;
    return (__m512i)shifted;
}

SIMULATED __m256i simulated_mask_sub_epi8(__m256i source, __mmask32 mask, __m256i a, __m256i b) {
    int8_t out[32], difference[32];
    memcpy(out, &source, sizeof(out));
    const __m256i differences = _mm256_sub_epi8(a, b);
    memcpy(difference, &differences, sizeof(difference));
    for (int i = 0; i < 32; ++i)
        out[i] = mask >> i & 1 ? difference[i] : out[i];
    return _mm256_loadu_si256((const __m256i *)out);
}

// Lane i of a quarter takes the lane of that quarter whose number is in bits 2 * i of order.
SIMULATED __m512 simulated_permute_ps(__m512 v, int order) {
    simulated_floats out = {0};
    for (int i = 0; i < 16; ++i)
        out[i] = ((simulated_floats)v)[(i & ~3) + (order >> 2 * (i & 3) & 3)];
    return (__m512)out;
}

// Quarters of a, two, then of b, two: two bits of order for each.
SIMULATED __m512 simulated_shuffle_f32x4(__m512 a, __m512 b, int order) {
    float in[2][16], out[16];
    memcpy(in[0], &a, sizeof(a));
    memcpy(in[1], &b, sizeof(b));
    for (int q = 0; q < 4; ++q)
        memcpy(out + 4 * q, in[q / 2] + 4 * (order >> 2 * q & 3), 4 * sizeof(out[0]));
    return _mm512_loadu_ps(out);
}

// Word i of 64 bits of a half takes the word of that half whose number is in bits 2 * i of order.
SIMULATED __m512i simulated_permutex_epi64(__m512i v, int order) {
    int64_t in[8], out[8];
    memcpy(in, &v, sizeof(in));
    for (int i = 0; i < 8; ++i)
        out[i] = in[(i & ~3) + (order >> 2 * (i & 3) & 3)];
    return _mm512_loadu_si512(out);
}

// Nearest, ties to even; what is too small to be normal becomes 0, as in the processor.
SIMULATED uint16_t simulated_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    if ((bits & 0x7f800000) == 0) return (uint16_t)(bits >> 16 & 0x8000);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

SIMULATED __m512bh simulated_cvtne2ps_pbh(__m512 high, __m512 low) {
    float in[32];
    memcpy(in, &low, sizeof(low));
    memcpy(in + 16, &high, sizeof(high));
    uint16_t out[32];
    for (int i = 0; i < 32; ++i)
        out[i] = simulated_bf16(in[i]);
    __m512bh pairs;
    memcpy(&pairs, out, sizeof(pairs));
    return pairs;
}

SIMULATED float simulated_without_denormal(float x) {
    return __builtin_fabsf(x) < 0x1p-126F ? __builtin_copysignf(0, x) : x;
}

// SIMDe's takes denormal numbers as they are, and the products in another order: the second of a
// pair is added first, each rounded once.
SIMULATED __m512 simulated_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b) {
    float sums[16];
    uint32_t pairs_a[16], pairs_b[16];
    memcpy(sums, &sum, sizeof(sums));
    memcpy(pairs_a, &a, sizeof(pairs_a));
    memcpy(pairs_b, &b, sizeof(pairs_b));
    for (int i = 0; i < 16; ++i) {
        float s = simulated_without_denormal(sums[i]);
        for (int shift = 0; shift <= 16; shift += 16) {
            const uint32_t bits[2] = {pairs_a[i] << shift & 0xffff0000,
                                      pairs_b[i] << shift & 0xffff0000};
            float x[2];
            memcpy(x, bits, sizeof(x));
            s = simulated_without_denormal(__builtin_fmaf(simulated_without_denormal(x[0]),
                                                          simulated_without_denormal(x[1]), s));
        }
        sums[i] = s;
    }
    return _mm512_loadu_ps(sums);
}

// Compilers have macros for some of them.
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtepi32_epi16
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepu8_epi32
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtph_ps
#undef _mm512_zextps256_ps512
#undef _mm512_cmpneq_epi32_mask
#undef _mm_cmpgt_epi32_mask
#undef _mm512_maskz_slli_epi32
#undef _mm256_mask_sub_epi8
#undef _mm512_permute_ps
#undef _mm512_permutex_epi64
#undef _mm512_shuffle_f32x4
#undef _mm512_cvtne2ps_pbh
#undef _mm512_dpbf16_ps

#define _mm512_cvtepi32_ps simulated_cvtepi32_ps
#define _mm512_cvtepi32_epi16 simulated_cvtepi32_epi16
#define _mm512_cvtepi8_epi32 simulated_cvtepi8_epi32
#define _mm512_cvtepu8_epi32 simulated_cvtepu8_epi32
#define _mm512_cvtepu16_epi32 simulated_cvtepu16_epi32
#define _mm512_cvtph_ps simulated_cvtph_ps
#define _mm512_zextps256_ps512 simulated_zextps256_ps512
#define _mm512_cmpneq_epi32_mask simulated_cmpneq_epi32_mask
#define _mm_cmpgt_epi32_mask simulated_cmpgt_epi32_mask
#define _mm512_maskz_slli_epi32 simulated_maskz_slli_epi32
#define _mm256_mask_sub_epi8 simulated_mask_sub_epi8
#define _mm512_permute_ps simulated_permute_ps
#define _mm512_permutex_epi64 simulated_permutex_epi64
#define _mm512_shuffle_f32x4 simulated_shuffle_f32x4
#define _mm512_cvtne2ps_pbh simulated_cvtne2ps_pbh
#define _mm512_dpbf16_ps simulated_dpbf16_ps

// SIMDe's alias is that of the masked one.
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 simde_mm512_madd_epi16

#endif
