// SPDX-License-Identifier: MIT
// Blocks of rows that become lanes of vectors out of registers, without being opened to memory
// first: 16 bytes each of as many rows as a vector has lanes are transposed, so that a lane has
// four bytes of its row, whose bits are moved for all rows at once. Rows that lie side by side in
// memory need no transposing.
#ifndef CPU_ROW_WORDS_H
#define CPU_ROW_WORDS_H

#include "ops/mul_mat/rounded/rounded.h"
#include "simd/words.h"
#include "types/blocks.h"
#include "types/repacked.h"

enum {
    LOADED_WORDS = 16 / WORD,           // vectors that are loaded together
    WORD_GROUPS = QK_K / ROUNDED_GROUP, // of a block of 256
    SCALE_VECTORS = MAX_GROUPS / WORD,  // vectors of whole scales
};

// A block of each row, except for its numbers.
struct word_block {
    vf scale, offset; // factors; that of what is added
    // Of blocks of 256, whole numbers, with a sign: of group g byte g % 4 of vector g / 4.
    wb scales[SCALE_VECTORS], offsets[SCALE_VECTORS];
};

// What of a block is loaded for more than one group of its numbers.
struct word_cache {
    ww low[2 * GROUP_WORDS], high[GROUP_WORDS];
};

// A block of each row.
struct lane_blocks {
    const char *const *rows; // where rows are
    int64_t at;              // bytes from there to the block
    bool is_repacked;        // known when compiling: rows lie side by side instead
    const char *words, *halves;
    int first_word; // where that of a plain block is
};

CPU_INLINE struct lane_blocks plain_blocks(const char *const *rows, int64_t at) {
    return (struct lane_blocks){.rows = rows, .at = at};
}

// The blocks `at` bytes into rows that begin together.
CPU_INLINE struct lane_blocks repacked_blocks(const struct block_format f, const char *rows,
                                              int64_t at) {
    const struct repacked_format layout = repacked_format(f.type, LANES);
    return (struct lane_blocks){
        .is_repacked = true,
        .halves = rows + at * LANES,
        .words = rows + at * LANES + repacked_words_at(layout),
        .first_word = repacked_first_word(layout),
    };
}

// --- words ---------------------------------------------------------------------------------------

// The word `field` bytes into each block.
CPU_INLINE ww load_word(const struct lane_blocks *b, const int field) {
    ww all;
    if (b->is_repacked) {
        memcpy(&all, b->words + (field - b->first_word) / WORD * (int)sizeof(all), sizeof(all));
        return all;
    }
    uint32_t w[LANES];
    CPU_UNROLLED
    for (int r = 0; r < LANES; ++r)
        memcpy(&w[r], b->rows[r] + b->at + field, sizeof(w[r]));
    v4w quads[LANES / QUAD];
    CPU_UNROLLED
    for (int i = 0; i < LANES / QUAD; ++i)
        quads[i] = (v4w){w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]};
    memcpy(&all, quads, sizeof(all));
    return all;
}

// 16 bytes of each block from `field` on: word i of all becomes vector i.
CPU_INLINE void load_words(const struct lane_blocks *b, const int field, ww *words) {
    if (b->is_repacked) {
        CPU_UNROLLED
        for (int i = 0; i < LOADED_WORDS; ++i)
            words[i] = load_word(b, field + i * WORD);
        return;
    }
    rows_words(b->rows, b->at + field, words);
}

// 32 bytes of each block.
CPU_INLINE void load_group(const struct lane_blocks *b, const int field, ww *words) {
    load_words(b, field, words);
    load_words(b, field + 16, words + LOADED_WORDS);
}

// The halves `field` bytes into each block as floats: in repacked rows those that fill no word.
CPU_INLINE vf load_halves(const struct lane_blocks *b, const int field) {
    if (b->is_repacked) {
        v8h low, high;
        memcpy(&low, b->halves, sizeof(low));
        memcpy(&high, b->halves + (LANES == 16 ? sizeof(low) : 0), sizeof(high));
        return halves_floats(low, high);
    }
    return rows_floats(b->rows, b->at + field);
}

// Bits `from` and up of each byte moved to bits `to` and up; `mask` keeps those that are wanted.
CPU_INLINE wb word_bits(ww v, const int from, const int to, const int mask) {
    const wb_pairs pairs = (wb_pairs)v;
#if defined(CPU_NEON)
    if (from > to && mask == 255 >> (from - to)) return (wb)v >> (from - to); // needs no mask
#endif
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
CPU_INLINE void nibble_numbers(const enum ggml_type type, const struct lane_blocks *b,
                               const int qs_at, wb *numbers) {
    ww qs[LOADED_WORDS];
    load_words(b, qs_at, qs);
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
CPU_INLINE void byte_numbers(const struct lane_blocks *b, const int qs_at, wb *numbers) {
    ww qs[GROUP_WORDS];
    load_group(b, qs_at, qs);
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i)
        numbers[i] = (wb)qs[i];
}

// As GGML_E8M0_TO_FP32_HALF() of each row's exponent: the two smallest are subnormal.
CPU_INLINE vf mxfp4_scales(ww codes) {
    const ww small = (ww){0} + 0x200000;
    const ww normal = (codes - 1) << 23;
    return vf_select((vi)(codes > 1), (vf)normal, (vf)(small << (codes & 1)));
}

// Scales and offsets of blocks of 32, and fifth bits of their numbers. What is no half of a byte
// lies in the first 16 bytes.
CPU_INLINE ww open_head_32(const struct block_format f, const struct lane_blocks *b,
                           struct word_block *out) {
    ww head[LOADED_WORDS];
    if (b->is_repacked && b->first_word > 0) {
        out->scale = load_halves(b, f.scale_at);
        out->offset = (vf){0};
        return f.type == GGML_TYPE_Q5_0 ? load_word(b, offsetof(block_q5_0, qh)) : (ww){0};
    }
    load_words(b, 0, head);
    out->scale = f.type == GGML_TYPE_MXFP4 ? mxfp4_scales(head[0] & 255) : words_floats(head[0]);
    out->offset = f.offset_at >= 0 ? words_floats(head[0] >> 16) : (vf){0};
    return f.type == GGML_TYPE_Q5_1 ? head[1] : head[0] >> 16 | head[1] << 16;
}

// Also numbers, larger by rounded_bias().
CPU_INLINE void open_block_32(const struct block_format f, const struct lane_blocks *b,
                              struct word_block *out, wb *numbers) {
    const ww qh = open_head_32(f, b, out);
    if (f.type == GGML_TYPE_Q8_0)
        byte_numbers(b, word_qs_at(f.type), numbers);
    else
        nibble_numbers(f.type, b, word_qs_at(f.type), numbers);
    if (f.type == GGML_TYPE_Q5_0 || f.type == GGML_TYPE_Q5_1) {
        CPU_UNROLLED
        for (int i = 0; i < GROUP_WORDS; ++i)
            numbers[i] |= word_fifth(qh, i);
    }
}

_Static_assert(offsetof(block_q5_0, qh) == 2 && offsetof(block_q5_1, qh) == 4, "of the head");

// --- blocks of 256 -------------------------------------------------------------------------------

CPU_INLINE bool has_fifth_bits(const enum ggml_type type) {
    return type == GGML_TYPE_Q5_K;
}

// Six-bit scales and minima of Q4_K and Q5_K.
CPU_INLINE void open_block_k4(const struct lane_blocks *b, struct word_block *out) {
    ww head[LOADED_WORDS]; // factors, then scales and minima
    load_words(b, 0, head);
    out->scale = words_floats(head[0]);
    out->offset = -words_floats(head[0] >> 16);
    out->scales[0] = (wb)head[1] & 63;
    out->scales[1] = ((wb)head[3] & 15) | word_bits(head[1], 2, 0, 48);
    out->offsets[0] = (wb)head[2] & 63;
    out->offsets[1] = word_bits(head[3], 4, 0, 15) | word_bits(head[2], 2, 0, 48);
}

CPU_INLINE void open_block_q2(const struct block_format f, const struct lane_blocks *b,
                              struct word_block *out) {
    ww packed[LOADED_WORDS];
    load_words(b, offsetof(block_q2_K, scales), packed);
    const ww both = load_word(b, f.scale_at);
    out->scale = words_floats(both);
    out->offset = -words_floats(both >> 16);
    CPU_UNROLLED
    for (int i = 0; i < SCALE_VECTORS; ++i) {
        out->scales[i] = (wb)packed[i] & 15;
        out->offsets[i] = word_bits(packed[i], 4, 0, 15);
    }
}

CPU_INLINE void open_block_q3(const struct block_format f, const struct lane_blocks *b,
                              struct word_block *out) {
    ww packed[LOADED_WORDS];
    load_words(b, (int)offsetof(block_q3_K, scales) - WORD, packed);
    out->scale = load_halves(b, f.scale_at);
    CPU_UNROLLED
    for (int i = 0; i < SCALE_VECTORS; ++i)
        out->scales[i] =
            (word_bits(packed[1 + i % 2], i / 2 * 4, 0, 15) | word_bits(packed[3], 2 * i, 4, 48)) -
            32;
}

CPU_INLINE void open_block_q6(const struct block_format f, const struct lane_blocks *b,
                              struct word_block *out) {
    ww packed[LOADED_WORDS];
    load_words(b, offsetof(block_q6_K, scales), packed);
    out->scale = load_halves(b, f.scale_at);
    CPU_UNROLLED
    for (int i = 0; i < SCALE_VECTORS; ++i)
        out->scales[i] = (wb)packed[i];
}

// Scales have four bits in one word and two in the upper half of another.
CPU_INLINE void open_block_iq4_xs(const struct lane_blocks *b, struct word_block *out) {
    ww head[LOADED_WORDS];
    load_words(b, 0, head);
    out->scale = words_floats(head[0]);
    CPU_UNROLLED
    for (int i = 0; i < 2; ++i) {
        ww whole = {0};
        CPU_UNROLLED
        for (int j = 0; j < WORD; ++j) {
            const int g = i * WORD + j;
            const ww low = head[1] >> 4 * g & 15, high = head[0] >> (16 + 2 * g) & 3;
            whole |= (low | high << 4) << 8 * j;
        }
        out->scales[i] = (wb)whole - 32;
    }
}

CPU_INLINE void open_block_256(const struct block_format f, const struct lane_blocks *b,
                               struct word_block *out) {
    switch (f.type) {
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K: open_block_k4(b, out); break;
    case GGML_TYPE_Q2_K: open_block_q2(f, b, out); break;
    case GGML_TYPE_Q3_K: open_block_q3(f, b, out); break;
    case GGML_TYPE_Q6_K: open_block_q6(f, b, out); break;
    case GGML_TYPE_IQ4_XS: open_block_iq4_xs(b, out); break;
    default: out->scale = load_halves(b, f.scale_at); // TQ2_0: one for all
    }
}

// Group g of Q4_K and Q5_K.
CPU_INLINE void block_numbers_k4(const struct block_format f, const struct lane_blocks *b,
                                 const int g, struct word_cache *cache, wb *numbers) {
    const int qs_at =
        has_fifth_bits(f.type) ? (int)offsetof(block_q5_K, qs) : (int)offsetof(block_q4_K, qs);
    if (has_fifth_bits(f.type) && g == 0) load_group(b, offsetof(block_q5_K, qh), cache->high);
    if (g % 2 == 0) load_group(b, qs_at + 16 * g, cache->low);
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i) {
        numbers[i] = word_bits(cache->low[i], g % 2 * 4, 0, 15);
        if (has_fifth_bits(f.type)) numbers[i] |= word_bits(cache->high[i], g, 4, 16);
    }
}

// Group g of Q2_K, Q3_K with a third bit, and TQ2_0.
CPU_INLINE void block_numbers_k2(const struct block_format f, const struct lane_blocks *b,
                                 const int g, struct word_cache *cache, wb *numbers) {
    const int qs_at = f.type == GGML_TYPE_Q2_K   ? (int)offsetof(block_q2_K, qs)
                      : f.type == GGML_TYPE_Q3_K ? (int)offsetof(block_q3_K, qs)
                                                 : (int)offsetof(block_tq2_0, qs);
    if (f.type == GGML_TYPE_Q3_K && g == 0) load_group(b, offsetof(block_q3_K, hmask), cache->high);
    if (g % 4 == 0) load_group(b, qs_at + 8 * g, cache->low);
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i) {
        numbers[i] = word_bits(cache->low[i], 2 * (g % 4), 0, 3);
        if (f.type == GGML_TYPE_Q3_K) numbers[i] |= word_bits(cache->high[i], g, 2, 4);
    }
}

CPU_INLINE void block_numbers_q6(const struct lane_blocks *b, const int g, struct word_cache *cache,
                                 wb *numbers) {
    const int half = g / 4, j = g % 4;
    if (j == 0) {
        const int low_at = (int)offsetof(block_q6_K, ql) + 64 * half;
        load_group(b, low_at, cache->low);
        load_group(b, low_at + 32, cache->low + GROUP_WORDS);
        load_group(b, (int)offsetof(block_q6_K, qh) + 32 * half, cache->high);
    }
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i)
        numbers[i] = word_bits(cache->low[GROUP_WORDS * (j % 2) + i], j / 2 * 4, 0, 15) |
                     word_bits(cache->high[i], 2 * j, 4, 48);
}

// Numbers of group g of 32, larger by rounded_bias(). Groups are taken one after the other: the
// first ones load into the cache what later ones need.
CPU_INLINE void block_numbers_256(const struct block_format f, const struct lane_blocks *b,
                                  const int g, struct word_cache *cache, wb *numbers) {
    switch (f.type) {
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K: block_numbers_k4(f, b, g, cache, numbers); break;
    case GGML_TYPE_Q6_K: block_numbers_q6(b, g, cache, numbers); break;
    case GGML_TYPE_IQ4_XS:
        nibble_numbers(f.type, b, (int)offsetof(block_iq4_xs, qs) + 16 * g, numbers);
        break;
    default: block_numbers_k2(f, b, g, cache, numbers);
    }
}

#endif
