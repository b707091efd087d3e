// SPDX-License-Identifier: MIT
// Blocks of eight repacked rows in vectors: 32-bit lanes are rows. For levels with AVX2 and no
// AVX-512.
#ifndef CPU_REPACKED_LANES_H
#define CPU_REPACKED_LANES_H

#include "gemm/gemm.h"
#include "ops/mul_mat/rounded/rounded.h"
#include "simd/bytes.h"
#include "types/blocks.h"
#include "types/repacked.h"

#if defined(__AVX2__) && !defined(__AVX512F__)

#include "simd/words.h"

enum {
    LANE_GROUPS = QK_K / ROUNDED_GROUP,
    SCALE_WORDS = 4, // vectors of scales of a block
};

// Word w of a block of each row.
CPU_INLINE vb lanes_word(const char *block, const int w) {
    return vb_load(block + w * REPACKED_ROWS * REPACKED_WORD);
}

// Number of the word that a field begins with.
#define WORD_OF(block, field) ((int)(offsetof(block, field) / REPACKED_WORD))

// Four numbers of each row, words 8 * g + i of the planes g = `first` and `first` + 2 of half a
// block, as bytes without sign that are larger by rounded_bias(). Both are moved together, and
// third bits are put in place by looking up all those of a byte's planes. `words` is where the
// words of the block begin.
CPU_INLINE void lanes_numbers(const enum ggml_type type, const char *words, const int half,
                              const int i, const int first, vb *out) {
    const v16b third[2] = {{0, 4, 0, 4, 64, 68, 64, 68, 0, 4, 0, 4, 64, 68, 64, 68},
                           {0, 0, 4, 4, 0, 0, 4, 4, 64, 64, 68, 68, 64, 64, 68, 68}};
    const int at = type == GGML_TYPE_Q2_K ? WORD_OF(block_q2_K, qs) : WORD_OF(block_q3_K, qs);
    vb both = vb_bits(lanes_word(words, at + 8 * half + i), 2 * first, 0, 0x33);
    if (type == GGML_TYPE_Q3_K) {
        const vb high = lanes_word(words, WORD_OF(block_q3_K, hmask) + i);
        both |= (vb)words_lookup(third[first], (wb)vb_bits(high, 4 * half, 0, 15));
    }
    out[0] = both & 15;
    out[1] = vb_bits(both, 4, 0, 15);
}

// Whole scales of a block by row, four of successive groups to a lane, and minima likewise where
// there are some.
CPU_INLINE void lanes_scales(const enum ggml_type type, const char *words, vb *scales, vb *minima) {
    if (type == GGML_TYPE_Q2_K) {
        for (int i = 0; i < SCALE_WORDS; ++i) {
            const vb both = lanes_word(words, WORD_OF(block_q2_K, scales) + i);
            scales[i] = both & 15;
            minima[i] = vb_bits(both, 4, 0, 15);
        }
        return;
    }
    const int at = WORD_OF(block_q3_K, scales);
    const vb low[2] = {lanes_word(words, at), lanes_word(words, at + 1)};
    const vb high = lanes_word(words, at + 2);
    for (int i = 0; i < SCALE_WORDS; ++i)
        scales[i] = (vb_bits(low[i % 2], i / 2 * 4, 0, 15) | vb_bits(high, 2 * i, 4, 48)) - 32;
}

// 256 times byte i of each lane, twice as 16 bits: what pairs of products are multiplied with. Such
// factors need no sign extension.
CPU_INLINE __m256i lanes_pair(vb v, const int i) {
    const __m256i lanes = _mm256_set_epi32(0x0C000C00, 0x08000800, 0x04000400, 0, 0x0C000C00,
                                           0x08000800, 0x04000400, 0);
    const __m256i last = _mm256_set1_epi16((int16_t)(i << 8 | 0x80));
    return _mm256_shuffle_epi8((__m256i)v, _mm256_add_epi8(lanes, last));
}

// Byte i of each lane as a float.
CPU_INLINE __m256 lanes_float(const bool is_signed, vb v, const int i) {
    const int up = 24 - 8 * i; // moves the byte to the top of its lane
    const __m256i top = up ? _mm256_slli_epi32((__m256i)v, up) : (__m256i)v;
    return _mm256_cvtepi32_ps(is_signed ? _mm256_srai_epi32(top, 24) : _mm256_srli_epi32(top, 24));
}

CPU_INLINE bool lanes_signed(const enum ggml_type type) {
    return type == GGML_TYPE_Q3_K;
}

// Lower or upper halves of a word of each row as floats.
CPU_INLINE __m256 lanes_halves(const char *words, const int w, const bool upper) {
    const __m256i word = (__m256i)lanes_word(words, w);
    const __m256i lower =
        upper ? _mm256_srli_epi32(word, 16) : _mm256_and_si256(word, _mm256_set1_epi32(0xFFFF));
    const __m256i packed = _mm256_packus_epi32(lower, lower);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

// The factors of a block of each row: of scales, and of minima.
CPU_INLINE void lanes_factors(const struct block_format f, const char *block, const char *words,
                              __m256 *scale, __m256 *offset) {
    if (f.offset_at < 0) {
        *scale = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)block));
        *offset = _mm256_setzero_ps();
        return;
    }
    const bool upper = f.scale_at % REPACKED_WORD != 0;
    *scale = lanes_halves(words, f.scale_at / REPACKED_WORD, upper);
    const bool offset_upper = f.offset_at % REPACKED_WORD != 0;
    *offset = _mm256_sub_ps(_mm256_setzero_ps(),
                            lanes_halves(words, f.offset_at / REPACKED_WORD, offset_upper));
}

// A block of eight rows whose first element is `first` of a panel of strips, where they become
// those from `row` on of n_rows. Nothing has to be moved across lanes.
CPU_INLINE void lanes_to_panel(const struct block_format f, const char *block, int64_t first,
                               const int row, const int n_rows, struct strip_panel *panel) {
    const char *words = block + repacked_words_at(repacked_format(f.type, REPACKED_ROWS));
    vb scales[SCALE_WORDS], minima[SCALE_WORDS];
    __m256 scale, offset;
    lanes_scales(f.type, words, scales, minima);
    lanes_factors(f, block, words, &scale, &offset);
    int8_t *numbers = panel->numbers + (first * n_rows + row * REPACKED_WORD);
    CPU_UNROLLED
    for (int i = 0; i < 2 * GROUP_WORDS; ++i) {
        const int half = i / GROUP_WORDS, word = i % GROUP_WORDS;
        CPU_UNROLLED
        for (int plane = 0; plane < 2; ++plane) {
            vb two[2];
            lanes_numbers(f.type, words, half, word, plane, two);
            CPU_UNROLLED
            for (int j = 0; j < 2; ++j) {
                const int group = 4 * half + plane + 2 * j;
                vb_store(numbers + (group * GROUP_WORDS + word) * REPACKED_WORD * n_rows, two[j]);
            }
        }
    }
    const int groups = f.size / f.group; // a division that sanitizers check leaves no unrolled loop
    CPU_UNROLLED
    for (int g = 0; g < groups; ++g) {
        const int64_t at = (first / f.group + g) * n_rows + row;
        const bool is_signed = lanes_signed(f.type);
        const __m256 s = lanes_float(is_signed, scales[g / 4], g % 4);
        _mm256_storeu_ps(panel->scales + at, _mm256_mul_ps(scale, s));
        if (f.offset_at < 0) continue;
        const __m256 o = lanes_float(is_signed, minima[g / 4], g % 4);
        _mm256_storeu_ps(panel->offsets + at, _mm256_mul_ps(offset, o));
    }
}

#endif
#endif
