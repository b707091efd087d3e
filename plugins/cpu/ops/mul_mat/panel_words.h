// SPDX-License-Identifier: MIT
// Blocks of rows that become lanes of a panel of strips out of registers, without being opened to
// memory first: 16 bytes each of as many rows as a vector has lanes are transposed, so that a lane
// has four bytes of its row, whose bits are moved for all rows at once. For gemm_rounded.c.
#ifndef CPU_PANEL_WORDS_H
#define CPU_PANEL_WORDS_H

#include "ops/mul_mat/rounded.h"
#include "types/blocks.h"

enum {
    WORD = 4,                           // bytes of a lane
    LOADED_WORDS = 16 / WORD,           // vectors that are loaded together
    WORD_GROUPS = QK_K / ROUNDED_GROUP, // of a block of 256
    WORDS_ARE_SIGNED = LANES == 16,     // numbers of a panel have no bias
};

// A word of each of LANES rows, as bytes and as integers.
typedef uint8_t wb __attribute__((vector_size(WORD * LANES)));
typedef uint16_t wb_pairs __attribute__((vector_size(WORD * LANES)));
typedef uint32_t ww __attribute__((vector_size(WORD * LANES)));
typedef uint16_t v8h __attribute__((vector_size(16)));

// Where LANES rows lie in a panel.
struct word_panel {
    int8_t *numbers;
    float *scales, *offsets;
    int32_t *starts;
    int64_t stride; // lanes between vectors that follow one another
};

// --- words ---------------------------------------------------------------------------------------

#if defined(__AVX512F__)
// 16 bytes of rows 0, 4, 8 and 12.
CPU_INLINE ww rows_load(const char *const *rows, int64_t at) {
    const __m256i low =
        _mm256_set_m128i((__m128i)v16b_load(rows[4] + at), (__m128i)v16b_load(rows[0] + at));
    const __m256i high =
        _mm256_set_m128i((__m128i)v16b_load(rows[12] + at), (__m128i)v16b_load(rows[8] + at));
    return (ww)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// The first two words of each 16 bytes of a and b in turn, and the last two.
CPU_INLINE ww first_words(ww a, ww b) {
    return (ww)_mm512_unpacklo_epi32((__m512i)a, (__m512i)b);
}

CPU_INLINE ww last_words(ww a, ww b) {
    return (ww)_mm512_unpackhi_epi32((__m512i)a, (__m512i)b);
}

// Entries of a table of 16.
CPU_INLINE wb words_lookup(v16b table, wb index) {
    return (wb)_mm512_shuffle_epi8(_mm512_broadcast_i32x4((__m128i)table), (__m512i)index);
}

// Byte i of each word four times.
CPU_INLINE wb words_spread(ww v, const int i) {
    const __m128i index =
        _mm_add_epi8(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C), _mm_set1_epi8((char)i));
    return (wb)_mm512_shuffle_epi8((__m512i)v, _mm512_broadcast_i32x4(index));
}

// The lower halves of words as floats.
CPU_INLINE vf words_floats(ww v) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)v));
}

CPU_INLINE vf halves_floats(v8h low, v8h high) {
    return _mm512_cvtph_ps(_mm256_set_m128i((__m128i)high, (__m128i)low));
}
#else
// 16 bytes of rows 0 and 4.
CPU_INLINE ww rows_load(const char *const *rows, int64_t at) {
    return (ww)_mm256_set_m128i((__m128i)v16b_load(rows[4] + at), (__m128i)v16b_load(rows[0] + at));
}

// The first two words of each 16 bytes of a and b in turn, and the last two.
CPU_INLINE ww first_words(ww a, ww b) {
    return (ww)_mm256_unpacklo_epi32((__m256i)a, (__m256i)b);
}

CPU_INLINE ww last_words(ww a, ww b) {
    return (ww)_mm256_unpackhi_epi32((__m256i)a, (__m256i)b);
}

// Entries of a table of 16.
CPU_INLINE wb words_lookup(v16b table, wb index) {
    return (wb)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256((__m128i)table), (__m256i)index);
}

// Byte i of each word four times.
CPU_INLINE wb words_spread(ww v, const int i) {
    const __m128i index =
        _mm_add_epi8(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C), _mm_set1_epi8((char)i));
    return (wb)_mm256_shuffle_epi8((__m256i)v, _mm256_broadcastsi128_si256(index));
}

// The lower halves of words as floats.
CPU_INLINE vf words_floats(ww v) {
    const __m256i halves = (__m256i)(v & 0xFFFF);
    const __m256i packed = _mm256_packus_epi32(halves, halves);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

CPU_INLINE vf halves_floats(v8h low, v8h high) {
    (void)high;
    return _mm256_cvtph_ps((__m128i)low);
}
#endif

// 16 bytes of each row from `at` on: word i of all rows becomes vector i.
CPU_INLINE void load_words(const char *const *rows, int64_t at, ww *words) {
    ww in[LOADED_WORDS];
    CPU_UNROLLED
    for (int i = 0; i < LOADED_WORDS; ++i)
        in[i] = rows_load(rows + i, at);
    const ww even_first = first_words(in[0], in[2]), even_last = last_words(in[0], in[2]);
    const ww odd_first = first_words(in[1], in[3]), odd_last = last_words(in[1], in[3]);
    words[0] = first_words(even_first, odd_first);
    words[1] = last_words(even_first, odd_first);
    words[2] = first_words(even_last, odd_last);
    words[3] = last_words(even_last, odd_last);
}

// 32 bytes of each row.
CPU_INLINE void load_group(const char *const *rows, int64_t at, ww *words) {
    load_words(rows, at, words);
    load_words(rows, at + 16, words + LOADED_WORDS);
}

// The word at `at` of each row.
CPU_INLINE ww load_word(const char *const *rows, int64_t at) {
    uint32_t w[LANES];
    CPU_UNROLLED
    for (int r = 0; r < LANES; ++r)
        memcpy(&w[r], rows[r] + at, sizeof(w[r]));
    v4w quads[LANES / QUAD];
    CPU_UNROLLED
    for (int i = 0; i < LANES / QUAD; ++i)
        quads[i] = (v4w){w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]};
    ww all;
    memcpy(&all, quads, sizeof(all));
    return all;
}

// The halves at `at` of eight rows.
CPU_INLINE v8h load_eight_halves(const char *const *rows, int64_t at) {
    uint16_t h[8];
    CPU_UNROLLED
    for (int r = 0; r < 8; ++r)
        memcpy(&h[r], rows[r] + at, sizeof(h[r]));
    return (v8h){h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]};
}

// The halves at `at` of each row as floats.
CPU_INLINE vf load_halves(const char *const *rows, int64_t at) {
    const v8h low = load_eight_halves(rows, at);
    return halves_floats(low, LANES == 16 ? load_eight_halves(rows + 8, at) : low);
}

// Bits `from` and up of each byte moved to bits `to` and up; `mask` keeps those that are wanted.
CPU_INLINE wb word_bits(ww v, const int from, const int to, const int mask) {
    const wb_pairs pairs = (wb_pairs)v;
    return (wb)(from > to ? pairs >> (from - to) : pairs << (to - from)) & (uint8_t)mask;
}

// Byte i of each word, which has a sign, as a float.
CPU_INLINE vf word_scale(wb v, const int i) {
    return __builtin_convertvector((vi)((ww)v << (24 - 8 * i)) >> 24, vf);
}

// 16 where bit 4 * i + j of a word is set, for byte j.
CPU_INLINE wb word_fifth(ww bits, const int i) {
    const wb set = (wb)((ww){0} + (i % 2 ? 0x80402010U : 0x08040201U));
    return (wb)((words_spread(bits, i / 2) & set) == set) & 16;
}

// --- numbers, scales and offsets -----------------------------------------------------------------

#if defined(__AVX512VNNI__)
// Numbers of 32 elements from `first` on. A group's sum begins with what the bias of columns adds
// to it, negated.
CPU_INLINE void put_numbers(const struct block_format f, const struct word_panel *to, int64_t first,
                            const wb *numbers) {
    const int groups = ROUNDED_GROUP / f.group, words = f.group / WORD;
    CPU_UNROLLED
    for (int g = 0; g < groups; ++g) {
        __m512i sum = _mm512_setzero_si512();
        CPU_UNROLLED
        for (int i = 0; i < words; ++i) {
            const __m512i q = (__m512i)(numbers[g * words + i] - (uint8_t)rounded_bias(f.type));
            _mm512_store_si512(to->numbers + (first / WORD + g * words + i) * to->stride * WORD, q);
            sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8((char)128), q);
        }
        _mm512_store_si512(to->starts + (first / f.group + g) * to->stride,
                           _mm512_sub_epi32(_mm512_setzero_si512(), sum));
    }
}
#else
// Numbers of 32 elements from `first` on.
CPU_INLINE void put_numbers(const struct block_format f, const struct word_panel *to, int64_t first,
                            const wb *numbers) {
    (void)f;
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i)
        memcpy(to->numbers + (first / WORD + i) * to->stride * WORD, &numbers[i],
               sizeof(numbers[i]));
}
#endif

// Scales of the group that begins with element `first`, and offsets or, where numbers keep their
// bias, what that subtracts.
CPU_INLINE void put_scales(const struct block_format f, const struct word_panel *to, int64_t first,
                           vf scales, vf offset) {
    const int64_t at = first / f.group * to->stride;
    vf_store(to->scales + at, scales);
    if (f.offset_at >= 0)
        vf_store(to->offsets + at, offset);
    else if (!WORDS_ARE_SIGNED)
        vf_store(to->offsets + at, scales * (float)-rounded_bias(f.type));
}

// --- blocks of 32 --------------------------------------------------------------------------------

// Where the four lower bits of a block are, or its bytes.
CPU_INLINE int word_qs_at(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_Q4_0: return offsetof(block_q4_0, qs);
    case GGML_TYPE_Q4_1: return offsetof(block_q4_1, qs);
    case GGML_TYPE_Q5_0: return offsetof(block_q5_0, qs);
    case GGML_TYPE_Q5_1: return offsetof(block_q5_1, qs);
    case GGML_TYPE_Q8_0: return offsetof(block_q8_0, qs);
    case GGML_TYPE_MXFP4: return offsetof(block_mxfp4, qs);
    default: return offsetof(block_iq4_nl, qs);
    }
}

// 32 numbers of each row: low halves of 16 bytes, then the high ones.
CPU_INLINE void nibble_numbers(const enum ggml_type type, const char *const *rows, int64_t qs_at,
                               wb *numbers) {
    ww qs[LOADED_WORDS];
    load_words(rows, qs_at, qs);
    const bool is_fp4 = type == GGML_TYPE_MXFP4;
    const v16b table =
        v16b_load(is_fp4 ? cpu_fp4_values : cpu_iq4_values) + (uint8_t)rounded_bias(type);
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i) {
        numbers[i] = word_bits(qs[i % LOADED_WORDS], i / LOADED_WORDS * 4, 0, 15);
        if (is_fp4 || type == GGML_TYPE_IQ4_NL || type == GGML_TYPE_IQ4_XS)
            numbers[i] = words_lookup(table, numbers[i]);
    }
}

// 32 bytes of each row.
CPU_INLINE void byte_numbers(const char *const *rows, int64_t qs_at, wb *numbers) {
    ww qs[GROUP_WORDS];
    load_group(rows, qs_at, qs);
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i)
        numbers[i] = (wb)qs[i];
}

// As GGML_E8M0_TO_FP32_HALF() of each row's exponent: the two smallest are subnormal.
CPU_INLINE vf mxfp4_scales(const char *const *rows, int64_t at) {
    const ww codes = load_word(rows, at) & 255;
    const ww small = (ww){0} + 0x200000;
    const ww normal = (codes - 1) << 23;
    return vf_select((vi)(codes > 1), (vf)normal, (vf)(small << (codes & 1)));
}

CPU_INLINE void pack_block_32(const struct block_format f, const char *const *rows, int64_t at,
                              int64_t first, const struct word_panel *to) {
    wb numbers[GROUP_WORDS];
    if (f.type == GGML_TYPE_Q8_0)
        byte_numbers(rows, at + word_qs_at(f.type), numbers);
    else
        nibble_numbers(f.type, rows, at + word_qs_at(f.type), numbers);
    if (f.type == GGML_TYPE_Q5_0 || f.type == GGML_TYPE_Q5_1) {
        const int qh_at = f.type == GGML_TYPE_Q5_0 ? (int)offsetof(block_q5_0, qh)
                                                   : (int)offsetof(block_q5_1, qh);
        const ww qh = load_word(rows, at + qh_at);
        CPU_UNROLLED
        for (int i = 0; i < GROUP_WORDS; ++i)
            numbers[i] |= word_fifth(qh, i);
    }
    put_numbers(f, to, first, numbers);
    if (f.type == GGML_TYPE_MXFP4) {
        put_scales(f, to, first, mxfp4_scales(rows, at), (vf){0});
    } else if (f.offset_at >= 0) {
        const ww both = load_word(rows, at + f.scale_at);
        put_scales(f, to, first, words_floats(both), words_floats(both >> 16));
    } else {
        put_scales(f, to, first, load_halves(rows, at + f.scale_at), (vf){0});
    }
}

// --- blocks of 256 -------------------------------------------------------------------------------

// Q4_K, and Q5_K with a fifth bit.
CPU_INLINE void pack_block_k4(const struct block_format f, const char *const *rows,
                              const struct word_panel *to) {
    const bool has_fifth = f.type == GGML_TYPE_Q5_K;
    ww head[LOADED_WORDS], qh[GROUP_WORDS];
    load_words(rows, 0, head); // factors, then scales and minima
    const vf scale = words_floats(head[0]), minimum = -words_floats(head[0] >> 16);
    const wb scales[2] = {(wb)head[1] & 63, ((wb)head[3] & 15) | word_bits(head[1], 2, 0, 48)};
    const wb minima[2] = {(wb)head[2] & 63,
                          word_bits(head[3], 4, 0, 15) | word_bits(head[2], 2, 0, 48)};
    if (has_fifth) load_group(rows, offsetof(block_q5_K, qh), qh);
    const int qs_at = has_fifth ? (int)offsetof(block_q5_K, qs) : (int)offsetof(block_q4_K, qs);
    ww qs[GROUP_WORDS];
    CPU_UNROLLED
    for (int g = 0; g < WORD_GROUPS; ++g) {
        wb numbers[GROUP_WORDS];
        if (g % 2 == 0) load_group(rows, qs_at + 16 * g, qs);
        CPU_UNROLLED
        for (int i = 0; i < GROUP_WORDS; ++i) {
            numbers[i] = word_bits(qs[i], g % 2 * 4, 0, 15);
            if (has_fifth) numbers[i] |= word_bits(qh[i], g, 4, 16);
        }
        put_numbers(f, to, g * ROUNDED_GROUP, numbers);
        put_scales(f, to, g * ROUNDED_GROUP, scale * word_scale(scales[g / 4], g % 4),
                   minimum * word_scale(minima[g / 4], g % 4));
    }
}

// Scales of Q2_K, Q3_K and TQ2_0.
CPU_INLINE void pack_k2_scales(const struct block_format f, const char *const *rows,
                               const struct word_panel *to) {
    ww packed[LOADED_WORDS];
    if (f.type == GGML_TYPE_TQ2_0) {
        const vf scale = load_halves(rows, f.scale_at);
        for (int g = 0; g < WORD_GROUPS; ++g)
            put_scales(f, to, g * ROUNDED_GROUP, scale, (vf){0});
        return;
    }
    if (f.type == GGML_TYPE_Q2_K) {
        load_words(rows, offsetof(block_q2_K, scales), packed);
        const ww both = load_word(rows, f.scale_at);
        const vf scale = words_floats(both), minimum = -words_floats(both >> 16);
        CPU_UNROLLED
        for (int i = 0; i < 4; ++i) {
            const wb scales = (wb)packed[i] & 15, minima = word_bits(packed[i], 4, 0, 15);
            CPU_UNROLLED
            for (int g = 0; g < 4; ++g)
                put_scales(f, to, (4 * i + g) * f.group, scale * word_scale(scales, g),
                           minimum * word_scale(minima, g));
        }
        return;
    }
    load_words(rows, (int)offsetof(block_q3_K, scales) - WORD, packed);
    const vf scale = load_halves(rows, f.scale_at);
    CPU_UNROLLED
    for (int i = 0; i < 4; ++i) {
        const wb scales =
            (word_bits(packed[1 + i % 2], i / 2 * 4, 0, 15) | word_bits(packed[3], 2 * i, 4, 48)) -
            32;
        CPU_UNROLLED
        for (int g = 0; g < 4; ++g)
            put_scales(f, to, (4 * i + g) * f.group, scale * word_scale(scales, g), (vf){0});
    }
}

// Q2_K, Q3_K with a third bit, TQ2_0.
CPU_INLINE void pack_block_k2(const struct block_format f, const char *const *rows,
                              const struct word_panel *to) {
    const int qs_at = f.type == GGML_TYPE_Q2_K   ? (int)offsetof(block_q2_K, qs)
                      : f.type == GGML_TYPE_Q3_K ? (int)offsetof(block_q3_K, qs)
                                                 : (int)offsetof(block_tq2_0, qs);
    ww qs[GROUP_WORDS], third[GROUP_WORDS];
    if (f.type == GGML_TYPE_Q3_K) load_group(rows, offsetof(block_q3_K, hmask), third);
    CPU_UNROLLED
    for (int g = 0; g < WORD_GROUPS; ++g) {
        wb numbers[GROUP_WORDS];
        if (g % 4 == 0) load_group(rows, qs_at + 8 * g, qs);
        CPU_UNROLLED
        for (int i = 0; i < GROUP_WORDS; ++i) {
            numbers[i] = word_bits(qs[i], 2 * (g % 4), 0, 3);
            if (f.type == GGML_TYPE_Q3_K) numbers[i] |= word_bits(third[i], g, 2, 4);
        }
        put_numbers(f, to, g * ROUNDED_GROUP, numbers);
    }
    pack_k2_scales(f, rows, to);
}

CPU_INLINE void pack_block_q6(const struct block_format f, const char *const *rows,
                              const struct word_panel *to) {
    ww packed[LOADED_WORDS];
    load_words(rows, offsetof(block_q6_K, scales), packed);
    const vf scale = load_halves(rows, f.scale_at);
    CPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
        ww low[2 * GROUP_WORDS], high[GROUP_WORDS];
        load_group(rows, (int)offsetof(block_q6_K, ql) + 64 * half, low);
        load_group(rows, (int)offsetof(block_q6_K, ql) + 64 * half + 32, low + GROUP_WORDS);
        load_group(rows, (int)offsetof(block_q6_K, qh) + 32 * half, high);
        CPU_UNROLLED
        for (int j = 0; j < 4; ++j) {
            wb numbers[GROUP_WORDS];
            CPU_UNROLLED
            for (int i = 0; i < GROUP_WORDS; ++i)
                numbers[i] = word_bits(low[GROUP_WORDS * (j % 2) + i], j / 2 * 4, 0, 15) |
                             word_bits(high[i], 2 * j, 4, 48);
            put_numbers(f, to, 128 * half + 32 * j, numbers);
        }
    }
    CPU_UNROLLED
    for (int i = 0; i < 4; ++i) {
        CPU_UNROLLED
        for (int g = 0; g < 4; ++g)
            put_scales(f, to, (4 * i + g) * f.group, scale * word_scale((wb)packed[i], g), (vf){0});
    }
}

// Scales have four bits in one word and two in the upper half of another.
CPU_INLINE void pack_block_iq4_xs(const struct block_format f, const char *const *rows,
                                  const struct word_panel *to) {
    ww head[LOADED_WORDS];
    load_words(rows, 0, head);
    const vf scale = words_floats(head[0]);
    CPU_UNROLLED
    for (int g = 0; g < WORD_GROUPS; ++g) {
        wb numbers[GROUP_WORDS];
        nibble_numbers(f.type, rows, (int)offsetof(block_iq4_xs, qs) + 16 * g, numbers);
        put_numbers(f, to, g * ROUNDED_GROUP, numbers);
        const ww low = head[1] >> 4 * g & 15, high = head[0] >> (16 + 2 * g) & 3;
        const vi whole = (vi)(low | high << 4) - 32;
        put_scales(f, to, g * ROUNDED_GROUP, scale * __builtin_convertvector(whole, vf), (vf){0});
    }
}

// --- the choice ----------------------------------------------------------------------------------

// Whether rows of the type are packed so: known when compiling. Numbers of eight bits are taken
// apart at levels without sign.
CPU_INLINE bool lies_in_words(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_IQ4_NL:
    case GGML_TYPE_IQ4_XS: return WORDS_ARE_SIGNED;
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_MXFP4:
    case GGML_TYPE_TQ2_0:
    case GGML_TYPE_Q2_K:
    case GGML_TYPE_Q3_K:
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K:
    case GGML_TYPE_Q6_K: return true;
    default: return false;
    }
}

// k elements of LANES rows, whole blocks.
CPU_INLINE void pack_words(const struct block_format f, const char *const *rows, int64_t k,
                           const struct word_panel *to) {
    if (f.size == ROUNDED_GROUP) {
        for (int64_t block = 0; block < k / ROUNDED_GROUP; ++block)
            pack_block_32(f, rows, block * f.bytes, block * ROUNDED_GROUP, to);
        return;
    }
    switch (f.type) {
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K: pack_block_k4(f, rows, to); break;
    case GGML_TYPE_Q6_K: pack_block_q6(f, rows, to); break;
    case GGML_TYPE_IQ4_XS: pack_block_iq4_xs(f, rows, to); break;
    default: pack_block_k2(f, rows, to);
    }
}

#endif
