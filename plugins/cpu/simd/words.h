// SPDX-License-Identifier: MIT
// Vectors of words, one of each of as many rows as a vector of floats has lanes, whose bytes are
// moved, looked up and multiplied within words. For x86-64-v2 and later levels, and for AArch64.
#ifndef CPU_WORDS_H
#define CPU_WORDS_H

#include "simd/bytes.h"
#include "simd/simd.h"

enum { WORD = 4 }; // bytes of a lane

// A word of each of LANES rows: as bytes, as integers, and as intrinsics take it.
typedef uint8_t wb __attribute__((vector_size(WORD * LANES)));
typedef uint16_t wb_pairs __attribute__((vector_size(WORD * LANES)));
typedef uint32_t ww __attribute__((vector_size(WORD * LANES)));
typedef uint16_t v8h __attribute__((vector_size(16)));

#if defined(CPU_NEON)
#include "simd/words_neon.h"
#else
#if defined(__AVX512F__)
typedef __m512i wi;
#define WIDE(instruction) _mm512_##instruction
#elif defined(__AVX2__)
typedef __m256i wi;
#define WIDE(instruction) _mm256_##instruction
#else
typedef __m128i wi;
#define WIDE(instruction) _mm_##instruction
#endif

#if defined(__AVX512F__)
#define KEEP_IN_REGISTER(sum) ((void)(sum))
#else
// The order of additions stays: as a tree of sums they would need more registers than there are.
#define KEEP_IN_REGISTER(sum) __asm__("" : "+x"(sum))
#endif

// --- moved ---------------------------------------------------------------------------------------

// The same 16 bytes for every four lanes.
CPU_INLINE wi spread_16(__m128i v) {
#if defined(__AVX512F__)
    return _mm512_broadcast_i32x4(v);
#elif defined(__AVX2__)
    return _mm256_broadcastsi128_si256(v);
#else
    return v;
#endif
}

// Four bytes in each lane.
CPU_INLINE wi spread_word(const void *x) {
    int32_t word;
    memcpy(&word, x, sizeof(word));
    return WIDE(set1_epi32)(word);
}

// The first two words of each 16 bytes of a and b in turn, and the last two.
CPU_INLINE ww first_words(ww a, ww b) {
    return (ww)WIDE(unpacklo_epi32)((wi)a, (wi)b);
}

CPU_INLINE ww last_words(ww a, ww b) {
    return (ww)WIDE(unpackhi_epi32)((wi)a, (wi)b);
}

// Entries of a table of 16.
CPU_INLINE wb words_lookup(v16b table, wb index) {
    return (wb)WIDE(shuffle_epi8)(spread_16((__m128i)table), (wi)index);
}

// Byte i of each word four times.
CPU_INLINE wb words_spread(ww v, const int i) {
    const __m128i index =
        _mm_add_epi8(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C), _mm_set1_epi8((char)i));
    return (wb)WIDE(shuffle_epi8)((wi)v, spread_16(index));
}

// Byte i of each word, which has a sign, twice as 16 bits.
CPU_INLINE wi scale_pair(wb v, const int i) {
    const wi lanes = spread_16(_mm_set_epi32(0x0C800C80, 0x08800880, 0x04800480, 0x00800080));
    const wi index = WIDE(add_epi8)(lanes, WIDE(set1_epi16)((int16_t)(i << 8)));
    return WIDE(srai_epi16)(WIDE(shuffle_epi8)((wi)v, index), 8);
}

// The lower or the upper two bytes of each word, which have a sign, as 16 bits.
CPU_INLINE wi widen_half(wb four, const bool upper) {
    const int first = upper ? 2 : 0; // goes to the upper byte of the lower word, the next likewise
    const __m128i rows = _mm_setr_epi32(0x01800080, 0x05800480, 0x09800880, 0x0D800C80);
    const __m128i index = _mm_add_epi32(rows, _mm_set1_epi32(first << 24 | first << 8));
    return WIDE(srai_epi16)(WIDE(shuffle_epi8)((wi)four, spread_16(index)), 8);
}

// --- floats --------------------------------------------------------------------------------------

// The lower halves of words as floats.
CPU_INLINE vf words_floats(ww v) {
#if defined(__AVX512F__)
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16((wi)v));
#elif !defined(__AVX2__)
    return vf_from_halves((vi)v & 0xFFFF);
#else
    const wi halves = (wi)(v & 0xFFFF), packed = _mm256_packus_epi32(halves, halves);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
#endif
}

// Only vectors of 16 lanes have those of `high`.
CPU_INLINE vf halves_floats(v8h low, v8h high) {
#if defined(__AVX512F__)
    return _mm512_cvtph_ps(_mm256_set_m128i((__m128i)high, (__m128i)low));
#elif defined(__AVX2__)
    (void)high;
    return _mm256_cvtph_ps((__m128i)low);
#else
    (void)high;
    return vf_from_halves((vi)_mm_cvtepu16_epi32((__m128i)low));
#endif
}

// a * b + c, rounded once where the level has that.
CPU_INLINE vf fused(vf a, vf b, vf c) {
#if defined(__FMA__)
    return WIDE(fmadd_ps)(a, b, c);
#else
    return a * b + c;
#endif
}

// --- products ------------------------------------------------------------------------------------

// Bytes without sign times those with one, two products added to 16 bits.
CPU_INLINE wi multiply_pairs(wb w, wi x) {
    return WIDE(maddubs_epi16)((wi)w, x);
}

CPU_INLINE wi add_pairs(wi a, wi b) {
    return WIDE(add_epi16)(a, b);
}

// The same in the register of a sum: compilers would add up a tree of products, for which there are
// too few, or copy each sum.
CPU_INLINE void add_pairs_to(wi *sum, wi products) {
#if defined(__AVX512F__)
    *sum = add_pairs(*sum, products);
#elif defined(__AVX2__)
    __asm__("vpaddw %1, %0, %0" : "+x"(*sum) : "x"(products));
#else
    __asm__("paddw %1, %0" : "+x"(*sum) : "x"(products));
#endif
}

// The same of words.
CPU_INLINE void add_words_to(wi *sum, wi words) {
#if defined(__AVX512F__)
    *sum = WIDE(add_epi32)(*sum, words);
#elif defined(__AVX2__)
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(words));
#else
    __asm__("paddd %1, %0" : "+x"(*sum) : "x"(words));
#endif
}

// The sums of pairs times those of scales.
CPU_INLINE wi scale_pairs(wi pairs, wi scales) {
    return WIDE(madd_epi16)(pairs, scales);
}

#undef WIDE
#endif

// --- rows ----------------------------------------------------------------------------------------

// 16 bytes of rows 0, 4, and so on.
CPU_INLINE ww rows_load(const char *const *rows, int64_t at) {
#if defined(__AVX2__)
    const __m256i low =
        _mm256_set_m128i((__m128i)v16b_load(rows[4] + at), (__m128i)v16b_load(rows[0] + at));
#if defined(__AVX512F__)
    const __m256i high =
        _mm256_set_m128i((__m128i)v16b_load(rows[12] + at), (__m128i)v16b_load(rows[8] + at));
    return (ww)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
#else
    return (ww)low;
#endif
#else
    return (ww)v16b_load(rows[0] + at);
#endif
}

// 16 bytes of LANES rows, `at` bytes into each: word i of all becomes vector i.
CPU_INLINE void rows_words(const char *const *rows, int64_t at, ww *words) {
    ww in[16 / WORD];
    CPU_UNROLLED
    for (int i = 0; i < 16 / WORD; ++i)
        in[i] = rows_load(rows + i, at);
    const ww even_first = first_words(in[0], in[2]), even_last = last_words(in[0], in[2]);
    const ww odd_first = first_words(in[1], in[3]), odd_last = last_words(in[1], in[3]);
    words[0] = first_words(even_first, odd_first);
    words[1] = last_words(even_first, odd_first);
    words[2] = first_words(even_last, odd_last);
    words[3] = last_words(even_last, odd_last);
}

// The halves `at` bytes into eight rows, or into as many as there are.
CPU_INLINE v8h eight_halves(const char *const *rows, int64_t at) {
    uint16_t h[8] = {0};
    CPU_UNROLLED
    for (int r = 0; r < MIN(LANES, 8); ++r)
        memcpy(&h[r], rows[r] + at, sizeof(h[r]));
    return (v8h){h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]};
}

// The halves `at` bytes into LANES rows.
CPU_INLINE vf rows_floats(const char *const *rows, int64_t at) {
    const v8h low = eight_halves(rows, at);
    return halves_floats(low, LANES == 16 ? eight_halves(rows + 8, at) : low);
}

CPU_INLINE vf floats_of(wi v) {
    return __builtin_convertvector((vi)v, vf);
}

#endif
