// SPDX-License-Identifier: MIT
// Rows that become a panel of strips as vectors of words, as many at a time as a vector has lanes.
// For gemm_rounded.c.
#ifndef CPU_PANEL_WORDS_H
#define CPU_PANEL_WORDS_H

#include "ops/mul_mat/rounded/number_ranges.h"
#include "ops/mul_mat/rounded/row_words.h"

enum { WORDS_ARE_SIGNED = !STRIPS_OF_PAIRS }; // numbers of a panel have no bias

// Where LANES rows lie in a panel.
struct word_panel {
    int8_t *numbers;
    float *scales, *offsets;
    int32_t *starts;
    int64_t stride; // lanes between vectors that follow one another
};

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
#elif defined(CPU_NEON)
// Numbers of 32 elements from `first` on, RUN of a row side by side.
CPU_INLINE void put_numbers(const struct block_format f, const struct word_panel *to, int64_t first,
                            const wb *numbers) {
    const int n = RUN / WORD; // words of a row: one or two
    int8_t *y = to->numbers + first * to->stride;
    ww w[GROUP_WORDS];
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i)
        w[i] = (ww)(numbers[i] - (uint8_t)rounded_bias(f.type));
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; i += n, y += to->stride * RUN) {
        const ww last = w[i + n - 1];
        const ww parts[2] = {n == 1 ? w[i] : first_words(w[i], last), last_words(w[i], last)};
        memcpy(y, parts, LANES * RUN);
    }
}
#else
// Numbers of 32 elements from `first` on.
CPU_INLINE void put_numbers(const struct block_format f, const struct word_panel *to, int64_t first,
                            const wb *numbers) {
    if (strip_parts(f.type) > 1) {
        CPU_UNROLLED
        for (int i = 0; i < 2 * GROUP_WORDS; ++i) {
            const wi half = widen_half(numbers[i / 2], i % 2);
            memcpy(to->numbers + (first / 2 + i) * to->stride * WORD, &half, sizeof(half));
        }
        return;
    }
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i)
        memcpy(to->numbers + (first / WORD + i) * to->stride * WORD, &numbers[i],
               sizeof(numbers[i]));
}
#endif

// Scales of the group that begins with element `first`, and offsets or what counts as such: a bias
// that no start of sums makes up for.
CPU_INLINE void put_scales(const struct block_format f, const struct word_panel *to, int64_t first,
                           vf scales, vf offset) {
    const int64_t at = first / f.group * to->stride;
    vf_store(to->scales + at, scales);
    if (f.offset_at >= 0)
        vf_store(to->offsets + at, offset);
    else if (!WORDS_ARE_SIGNED && strip_parts(f.type) == 1 && start_bias(f.type, f.group) == 0)
        vf_store(to->offsets + at, scales * (float)-rounded_bias(f.type));
}

CPU_INLINE void pack_block_32(const struct block_format f, const struct lane_blocks *blocks,
                              int64_t first, const struct word_panel *to) {
    struct word_block b = {.scale = {0}};
    wb numbers[GROUP_WORDS];
    open_block_32(f, blocks, &b, numbers);
    put_numbers(f, to, first, numbers);
    put_scales(f, to, first, b.scale, b.offset);
}

CPU_INLINE void pack_block_256(const struct block_format f, const struct lane_blocks *blocks,
                               const struct word_panel *to) {
    struct word_block b = {.scale = {0}};
    struct word_cache cache;
    open_block_256(f, blocks, &b);
    CPU_UNROLLED
    for (int g = 0; g < WORD_GROUPS; ++g) {
        wb numbers[GROUP_WORDS];
        block_numbers_256(f, blocks, g, &cache, numbers);
        put_numbers(f, to, g * ROUNDED_GROUP, numbers);
    }
    const int groups = f.size / f.group;
    CPU_UNROLLED
    for (int g = 0; g < groups; ++g) {
        vf scale = b.scale, offset = {0};
        if (f.type != GGML_TYPE_TQ2_0) scale *= word_scale(b.scales[g / WORD], g % WORD);
        if (f.offset_at >= 0) offset = b.offset * word_scale(b.offsets[g / WORD], g % WORD);
        put_scales(f, to, g * f.group, scale, offset);
    }
}

// --- the choice ----------------------------------------------------------------------------------

// Whether rows of the type are packed so: known when compiling.
CPU_INLINE bool lies_in_words(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_IQ4_NL:
    case GGML_TYPE_IQ4_XS:
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

// k elements of LANES rows, whole blocks; those that are repacked all begin at the first.
CPU_INLINE void pack_lanes(const struct block_format f, const char *const *rows, int64_t k,
                           const struct word_panel *to, const bool repacked) {
    for (int64_t block = 0; block < k / f.size; ++block) {
        const struct lane_blocks blocks = repacked ? repacked_blocks(f, rows[0], block * f.bytes)
                                                   : plain_blocks(rows, block * f.bytes);
        if (f.size == ROUNDED_GROUP)
            pack_block_32(f, &blocks, block * ROUNDED_GROUP, to);
        else
            pack_block_256(f, &blocks, to);
    }
}

// Rows from `r` on of those that are packed together.
CPU_INLINE struct word_panel words_of(const struct panel_rows *to, const int r) {
    const int64_t first = to->first + r;
    return (struct word_panel){to->panel->numbers + first * RUN, to->panel->scales + first,
                               to->panel->offsets + first, to->panel->starts + first, to->stride};
}

// ROWS rows, where the type has this way.
CPU_INLINE bool pack_in_words(const struct block_format f, const struct panel_rows *to) {
    if (!lies_in_words(f.type)) return false;
    for (int r = 0; r < ROWS; r += LANES) {
        const struct word_panel words = words_of(to, r);
        pack_lanes(f, to->rows + r, to->k, &words, false);
    }
    return true;
}

#if defined(__AVX512F__) || defined(CPU_NEON)
// --- panels of repacked rows ---------------------------------------------------------------------

// Elements [k0, k0 + k) of n_rows rows, or, to fill ROWS lanes, the last rows side by side again.
CPU_INLINE void pack_side_by_side(const struct block_format f, const struct gemm_rows *rows,
                                  int64_t row, int64_t n_rows, int64_t k0, int64_t k, size_t ahead,
                                  struct strip_panel *panel) {
    const size_t size = (size_t)(k / f.size * f.bytes) * REPACKED_ROWS;
    const int64_t n_lanes = (n_rows + ROWS - 1) / ROWS * ROWS;
    for (int64_t r = 0; r < n_lanes; r += REPACKED_ROWS) {
        const char *from = rows->data +
                           (size_t)(row + MIN(r, n_rows - REPACKED_ROWS)) * rows->stride +
                           (size_t)(k0 / f.size * f.bytes) * REPACKED_ROWS;
        const struct panel_rows to = {&from, k, panel, r, n_lanes};
        const struct word_panel words = words_of(&to, 0);
        for (size_t i = 0; i < size; i += LINE)
            __builtin_prefetch(from + ahead + i, 0, 2);
        pack_lanes(f, &from, k, &words, true);
    }
}

// False for types that aren't repacked. `ahead`: bytes to what is packed next.
static bool pack_repacked(const struct gemm_rows *rows, int64_t row, int64_t n_rows, int64_t k0,
                          int64_t k, size_t ahead, struct strip_panel *panel) {
    switch ((int)rows->type) {
#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    case GGML_TYPE_##NAME:                                                                         \
        pack_side_by_side(BLOCK_FORMAT(NAME, name, __VA_ARGS__), rows, row, n_rows, k0, k, ahead,  \
                          panel);                                                                  \
        return true;
#include "ops/mul_mat/rounded/repacked_list.inl"
    default: return false;
    }
}
#endif

#endif
