// SPDX-License-Identifier: MIT
// Vectors of bytes, and operations that compilers don't translate to this level's instructions by
// themselves.
#ifndef CPU_BYTES_H
#define CPU_BYTES_H

#include "simd/convert.h"
#include "simd/simd.h"

#if defined(__SSE4_1__)
#include <immintrin.h>
#elif defined(CPU_NEON)
#include <arm_neon.h>
#endif

// Put before a loop over constants of at most 32 rounds: GCC unrolls one of more than this only in
// part, and keeps arrays that it fills in memory.
#if defined(__GNUC__) && !defined(__clang__)
#define CPU_UNROLLED _Pragma("GCC unroll 32")
#else
#define CPU_UNROLLED
#endif

// A store in between: otherwise compilers keep this in vector registers and take it apart by
// shuffles, which cost more than loads that widen or spread.
#define CPU_IN_MEMORY(object) __asm__("" : "+m"(object))

typedef uint8_t v16b __attribute__((vector_size(16)));
typedef uint64_t v2q __attribute__((vector_size(16)));
typedef uint32_t v4w __attribute__((vector_size(16)));
typedef uint8_t vb __attribute__((vector_size(BYTES)));
typedef uint16_t vb_pairs __attribute__((vector_size(BYTES)));

// Unaligned load of 16 bytes.
CPU_INLINE v16b v16b_load(const void *p) {
    v16b v;
    memcpy(&v, p, sizeof(v));
    return v;
}

// Unaligned load of a vector of bytes.
CPU_INLINE vb vb_load(const void *p) {
    vb v;
    memcpy(&v, p, sizeof(v));
    return v;
}

// The first n bytes, the others 0.
CPU_INLINE vb vb_load_part(const void *p, size_t n) {
    vb v = {0};
    memcpy(&v, p, n);
    return v;
}

CPU_INLINE void vb_store(void *p, vb v) {
    memcpy(p, &v, sizeof(v));
}

// Bits `from` and up of each byte moved to bits `to` and up; `mask` keeps those that are wanted.
CPU_INLINE vb vb_bits(vb v, const int from, const int to, const int mask) {
    const vb_pairs pairs = (vb_pairs)v;
    return (vb)(from > to ? pairs >> (from - to) : pairs << (to - from)) & (uint8_t)mask;
}

// The sum of 16 bytes with sign.
CPU_INLINE int32_t sum_of_16(const int8_t *x) {
#if defined(__SSE4_1__)
    const __m128i raised =
        _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)x), _mm_set1_epi8(-128));
    const __m128i sums = _mm_sad_epu8(raised, _mm_setzero_si128());
    return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 2) - 16 * 128;
#elif defined(CPU_NEON)
    return vaddlvq_s8(vld1q_s8(x));
#else
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i)
        sum += x[i];
    return sum;
#endif
}

#define BYTES_8(x) x, x, x, x, x, x, x, x
#define BITS_8 1, 2, 4, 8, 16, 32, 64, 128

// Entry `index` of a table of 16, index < 16, for each byte.
CPU_INLINE v16b v16b_lookup(const int8_t *table, v16b index) {
#if defined(__SSSE3__)
    return (v16b)_mm_shuffle_epi8((__m128i)v16b_load(table), (__m128i)index);
#elif defined(CPU_NEON)
    return (v16b)vqtbl1q_u8((uint8x16_t)v16b_load(table), (uint8x16_t)index);
#else
    uint8_t bytes[16];
    memcpy(bytes, &index, sizeof(bytes));
    for (int i = 0; i < 16; ++i)
        bytes[i] = (uint8_t)table[bytes[i]];
    return v16b_load(bytes);
#endif
}

#if defined(__AVX2__)
// Each byte of `index` (0 to 15) becomes the table's entry.
CPU_INLINE vb vb_lookup(const int8_t *table, vb index) {
    const __m128i entries = _mm_loadu_si128((const __m128i *)(const void *)table);
    return (vb)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), (__m256i)index);
}

// A vector of nibbles: low ones of 16 bytes first, then the high ones.
CPU_INLINE vb vb_nibbles(const uint8_t *qs, int j) {
    const __m128i packed = _mm_loadu_si128((const __m128i *)(const void *)(qs + j));
    const __m256i shifts = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    return (vb)_mm256_srlv_epi32(_mm256_broadcastsi128_si256(packed), shifts) & 15;
}

// A byte per bit: all ones where it is set.
CPU_INLINE vb vb_mask(const uint8_t *bits) {
    const vb set = {BITS_8, BITS_8, BITS_8, BITS_8};
    int32_t word;
    memcpy(&word, bits, sizeof(word));
    const vb copies = (vb)_mm256_set1_epi32(word);
    const vb spread =
        __builtin_shufflevector(copies, copies, BYTES_8(0), BYTES_8(1), BYTES_8(18), BYTES_8(19));
    return (vb)((spread & set) == set);
}
#else
CPU_INLINE vb vb_lookup(const int8_t *table, vb index) {
    return v16b_lookup(table, index);
}

// Numbers j and up of 32: the low halves of 16 bytes, then the high halves.
CPU_INLINE vb vb_nibbles(const uint8_t *qs, int j) {
    return j == 0 ? vb_load(qs) & 15 : vb_bits(vb_load(qs), 4, 0, 15);
}

// 255 for each bit that is set, the lowest first, else 0.
CPU_INLINE vb vb_mask(const uint8_t *bits) {
    const vb set = {BITS_8, BITS_8};
    uint16_t word;
    memcpy(&word, bits, sizeof(word));
    const vb both = (vb)(vb_pairs){word};
    const vb spread = __builtin_shufflevector(both, both, BYTES_8(0), BYTES_8(1));
    return (vb)((spread & set) == set);
}
#endif

#undef BYTES_8
#undef BITS_8

// As many bytes as a vector has, from words of 8 or of 4 bytes.
#if defined(__AVX2__)
CPU_INLINE vb vb_eights(const uint64_t *x) {
    return (vb)_mm256_set_m128i((__m128i)(v2q){x[2], x[3]}, (__m128i)(v2q){x[0], x[1]});
}

CPU_INLINE vb vb_fours(const uint32_t *x) {
    return (vb)_mm256_set_m128i((__m128i)(v4w){x[4], x[5], x[6], x[7]},
                                (__m128i)(v4w){x[0], x[1], x[2], x[3]});
}
#else
CPU_INLINE vb vb_eights(const uint64_t *x) {
    return (vb)(v2q){x[0], x[1]};
}

CPU_INLINE vb vb_fours(const uint32_t *x) {
    return (vb)(v4w){x[0], x[1], x[2], x[3]};
}
#endif

// Negates bytes whose bit is set, the lowest bit first.
CPU_INLINE vb vb_negate(vb v, uint32_t bits) {
#if defined(__AVX512VL__) && defined(__AVX512BW__)
    return (vb)_mm256_mask_sub_epi8((__m256i)v, bits, _mm256_setzero_si256(), (__m256i)v);
#else
    uint8_t bytes[4];
    memcpy(bytes, &bits, sizeof(bytes));
    const vb mask = vb_mask(bytes);
    return (v ^ mask) - mask;
#endif
}

// A half of four that four_floats() converts: a whole register, as a compiler that is short of them
// stores only the 16 bits of a narrower one, and then has to wait until it can load 64.
CPU_INLINE uint64_t half_of_four(const void *p, const int i) {
    uint16_t half;
    memcpy(&half, p, sizeof(half));
    return (uint64_t)half << 16 * i;
}

// Four halves as floats, the first in the lowest bits.
CPU_INLINE void four_floats(float *y, uint64_t halves) {
#if defined(__F16C__)
    _mm_storeu_ps(y, _mm_cvtph_ps(_mm_cvtsi64_si128((int64_t)halves)));
#else
    ggml_fp16_t x[4];
    for (int i = 0; i < 4; ++i)
        x[i] = (ggml_fp16_t)(halves >> 16 * i);
    cpu_f16_to_f32(y, x, 4);
#endif
}

// As many numbers as a vector of floats has.
#if defined(__AVX512F__)
// LANES signed bytes as floats.
CPU_INLINE vf vf_from_i8(const int8_t *q) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)q)));
}

// LANES BF16 numbers as floats: they are the upper half of a float's bits.
CPU_INLINE vf vf_from_bf16(const void *x) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x));
    return (vf)_mm512_slli_epi32(wide, 16);
}

CPU_INLINE vf vf_from_f16(const void *x) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)x));
}
#elif defined(__AVX2__)
CPU_INLINE vf vf_from_i8(const int8_t *q) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)q)));
}

CPU_INLINE vf vf_from_bf16(const void *x) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x));
    return (vf)_mm256_slli_epi32(wide, 16);
}

CPU_INLINE vf vf_from_f16(const void *x) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x));
}
#elif defined(CPU_NEON)
CPU_INLINE vf vf_from_i8(const int8_t *q) {
    uint32_t packed;
    memcpy(&packed, q, sizeof(packed));
    const int8x8_t bytes = vreinterpret_s8_u32(vdup_n_u32(packed));
    return (vf)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))));
}

CPU_INLINE vf vf_from_bf16(const void *x) {
    return (vf)vshll_n_u16(vld1_u16(x), 16);
}

CPU_INLINE vf vf_from_f16(const void *x) {
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x)));
}
#else
CPU_INLINE vf vf_from_i8(const int8_t *q) {
#if defined(__SSE4_1__)
    int32_t packed;
    memcpy(&packed, q, sizeof(packed));
    return (vf)_mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(packed)));
#else
    vf v;
    for (int i = 0; i < LANES; ++i)
        v[i] = (float)q[i];
    return v;
#endif
}

// LANES unsigned 16-bit numbers at any address, extended to 32 bits.
CPU_INLINE vi vi_from_u16(const void *x) {
    vi v;
#if defined(__SSE4_1__)
    v = (vi)_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)x));
#else
    for (int i = 0; i < LANES; ++i)
        v[i] = ((const uint16_t *)x)[i];
#endif
    return v;
}

CPU_INLINE vf vf_from_bf16(const void *x) {
    return (vf)(vi_from_u16(x) << 16);
}

// Halves, each in the lower bits of a lane. Subnormal numbers are converted as integers; the
// largest exponent (infinity, NaN) stays the largest.
CPU_INLINE vf vf_from_halves(vi bits) {
    const vi magnitude = bits & 0x7FFF;
    const vi sign = (bits & 0x8000) << 16;
    const vi bias = (112 << 23) + ((magnitude >= 0x7C00) & (112 << 23));
    const vf large = (vf)((magnitude << 13) + bias);
    const vf small = __builtin_convertvector(magnitude, vf) * 0x1p-24f;
    return (vf)((vi)vf_select(magnitude < 0x0400, small, large) | sign);
}

CPU_INLINE vf vf_from_f16(const void *x) {
    return vf_from_halves(vi_from_u16(x));
}
#endif

#endif
