// SPDX-License-Identifier: MIT
// Products of some rounded columns with as many rows as one or two vectors have lanes:
// four numbers of each row are multiplied with four of a column, which all lanes get. Rows are
// opened once for all columns, and nothing is added across lanes. What is rounded is said by
// intrinsics, so that a row's results don't depend on its place. For mul_rounded.c.
#ifndef CPU_WORD_DOTS_H
#define CPU_WORD_DOTS_H

#include "ops/mul_mat/rounded/rounded.h"

#if CPU_ROWS_AS_LANES

#include "ops/mul_mat/rounded/row_words.h"

enum {
    // Vectors of rows that share what is loaded of columns: registers are too few for sums of more.
    WORD_VECTORS = VECTORS == 16 ? 2 : 1,
    WORD_ROWS = WORD_VECTORS * LANES,
};

// Rows beyond the last repeat it; those that are repacked all begin at the first.
struct word_tile {
    const char *rows[WORD_ROWS];
    int64_t k;
    const struct rounded *x; // the first part of the columns
    int fours;               // of columns before the last ones
    const char *next; // the rows that are computed next, side by side, from what is asked for
    size_t next_step; // bytes of them for each group of the columns
    vf sums[ROUNDED_FOURS][ROUNDED_COLUMNS][WORD_VECTORS];
};

// A group of 32 elements of the rows, opened: one of the type's, or two of 16.
struct word_group {
    wb numbers[GROUP_WORDS][WORD_VECTORS];
    ww pairs[2][WORD_VECTORS]; // whole scales, twice as 16 bits
    vf scales[2][WORD_VECTORS];
};

// Up to ROUNDED_DEPTH elements of the rows.
struct word_part {
    struct word_group groups[WORD_GROUPS];
    vf offsets[MAX_GROUPS][WORD_VECTORS];
    vf scale[WORD_VECTORS], offset[WORD_VECTORS]; // factors of blocks of 256
};

enum { NEVER_IN_LANES = ROUNDED_MOST + 1 };

// From how many columns on rows of the type are multiplied so: known when compiling. Fewer are as
// fast as memory allows in four streams, or with 256-bit vectors faster by rounded_lines.h; with
// 128-bit ones all are, save for those that lines_neon.h has. Numbers of eight bits take more than
// one instruction without VNNI or DOTPROD; with these, Q8_0 needs no opening anyway.
CPU_INLINE int least_in_lanes(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_TQ2_0:
    case GGML_TYPE_MXFP4: return LANES == 16 ? 2 : 1;
    case GGML_TYPE_Q3_K: return LANES == 8 ? 3 : 1;
#if defined(CPU_NEON)
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_IQ4_NL: return 2;
    case GGML_TYPE_IQ4_XS:
#else
#if defined(__AVX512VNNI__)
    case GGML_TYPE_IQ4_NL:
    case GGML_TYPE_IQ4_XS:
#endif
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_1:
#endif
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q2_K:
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K:
    case GGML_TYPE_Q6_K: return LANES == 16 ? 2 : LANES == 8 ? 3 : 1;
    default: return NEVER_IN_LANES;
    }
}

// Types whose groups have whole scales.
CPU_INLINE bool has_whole_scales(const struct block_format f) {
    return f.size > ROUNDED_GROUP && f.type != GGML_TYPE_TQ2_0;
}

// --- a group of numbers --------------------------------------------------------------------------

// Whether products are added in pairs of 16 bits, to which whole scales are multiplied.
enum {
#if defined(__AVX512VNNI__) || defined(CPU_NEON)
    WORD_PAIRS = 0,
#else
    WORD_PAIRS = 1,
#endif
};

// By how much numbers are larger than the type's: without signs where bytes with signs aren't
// multiplied. Sums begin with what makes up for it, which takes less than making numbers smaller.
CPU_INLINE int word_bias(const enum ggml_type type) {
#if defined(__AVX512VNNI__)
    return quarter_bias(type);
#else
    return rounded_bias(type);
#endif
}

#if defined(CPU_NEON)
// Only pairs have scales of 16 bits.
CPU_INLINE wi scale_pair(wb v, const int i) {
    (void)v, (void)i;
    return (wi){0};
}
#endif

#if defined(__AVX512VNNI__) || defined(__ARM_FEATURE_DOTPROD)
// sum += products of word w of a group of each row with that of group g of a column.
CPU_INLINE wi add_word(wi sum, wb rows, const struct rounded *x, int g, const int w) {
    const int8_t *numbers = x->numbers + g * ROUNDED_GROUP;
#if defined(CPU_NEON)
    return dot_lane(sum, rows, numbers + w / 4 * 16, w % 4);
#else
    return _mm512_dpbusd_epi32(sum, (wi)rows, spread_word(numbers + w * WORD));
#endif
}

// dots[c] += products of words [from, to) of each row with those of group g of column c.
CPU_INLINE void add_words(const struct block_format f, const struct word_group *a,
                          const struct rounded *x, int g, const int from, const int to,
                          const int columns, wi *dots) {
    (void)f;
    CPU_UNROLLED
    for (int w = from; w < to; ++w) {
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c)
            dots[c] = add_word(dots[c], a->numbers[w][0], &x[c], g, w);
    }
}
#elif defined(CPU_NEON)
// The same. Products are added in 16 bits, four lanes of each row, for as long as they fit: numbers
// up to 31 eight times, up to 63 in groups of 16, signed bytes twice.
CPU_INLINE void add_words(const struct block_format f, const struct word_group *a,
                          const struct rounded *x, int g, const int from, const int to,
                          const int columns, wi *dots) {
    const int chain = f.type == GGML_TYPE_IQ4_NL || f.type == GGML_TYPE_IQ4_XS ? 2 : to - from;
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int first = from; first < to; first += chain) {
            int16x8_t low = vdupq_n_s16(0), high = low; // of the first two rows, of the others
            CPU_UNROLLED
            for (int w = first; w < first + chain; ++w) {
                const int8x16_t rows = (int8x16_t)a->numbers[w][0];
                const int8_t *numbers = x[c].numbers + g * ROUNDED_GROUP + w * WORD;
                const int8x16_t four = (int8x16_t)spread_word(numbers);
                low = vmlal_s8(low, vget_low_s8(rows), vget_low_s8(four));
                high = vmlal_high_s8(high, rows, four);
            }
            dots[c] += vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
        }
        // Compilers would load what is multiplied next, of all groups, and spill it.
        __asm__ volatile("" ::: "memory");
    }
}
#endif

#if defined(__AVX512VNNI__) || defined(CPU_NEON)
// What sums of n numbers of a column begin with: -bias times these.
CPU_INLINE int32_t start_of_words(const enum ggml_type type, const int8_t *numbers, const int n) {
    int32_t sum = 0;
    for (int i = 0; i < n; i += 16)
        sum += sum_of_16(numbers + i);
    return -word_bias(type) * sum;
}

// What the sum of group i of 32 begins with, of types with a bias.
CPU_INLINE wi word_start(const struct rounded *x, int g, const int i) {
    return spread_word(&x->starts[g][i]);
}

// scaled[c] = products of a group of each row with group g of column c, times the scales of the
// rows.
CPU_INLINE void dot_words_of_32(const struct block_format f, const struct word_group *a,
                                const struct rounded *x, int g, const int columns,
                                vf (*scaled)[WORD_VECTORS]) {
    const int words = f.group / WORD, groups = GROUP_WORDS / words;
    CPU_UNROLLED
    for (int i = 0; i < groups; ++i) {
        wi dots[ROUNDED_COLUMNS];
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c)
            dots[c] = word_bias(f.type) ? word_start(&x[c], g, i) : (wi){0};
        add_words(f, a, x, g, i * words, (i + 1) * words, columns, dots);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const vf products = floats_of(dots[c]), scale = a->scales[i][0];
            scaled[c][0] = i == 0 ? products * scale : fused(products, scale, scaled[c][0]);
        }
    }
}
#else
// What sums of n numbers of a column begin with: -bias times those of each lane's pairs.
CPU_INLINE int32_t start_of_words(const enum ggml_type type, const int8_t *numbers, const int n) {
    __m128i sum = _mm_setzero_si128();
    for (int i = 0; i < n; i += 16)
        sum = _mm_add_epi16(
            sum, _mm_maddubs_epi16(_mm_set1_epi8(1),
                                   _mm_loadu_si128((const __m128i *)(const void *)(numbers + i))));
    sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0x4E));
    sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xB1));
    return _mm_cvtsi128_si32(_mm_mullo_epi16(sum, _mm_set1_epi16((int16_t)-word_bias(type))));
}

// Words whose products are added in 16 bits: sums of numbers whose bias is made up for by what they
// begin with fit for all of a group, others of five bits for 16.
CPU_INLINE int words_in_chain(const struct block_format f) {
    return f.type == GGML_TYPE_Q5_1 || f.type == GGML_TYPE_Q5_K ? 4 : f.group / WORD;
}

// scaled[c] = products of a group of each row with group g of column c, times the scales of the
// rows.
CPU_INLINE void dot_words_of_32(const struct block_format f, const struct word_group *a,
                                const struct rounded *x, int g, const int columns,
                                vf (*scaled)[WORD_VECTORS]) {
    const int words = f.group / WORD, chain = words_in_chain(f);
    wi dots[ROUNDED_COLUMNS][WORD_VECTORS];
    CPU_UNROLLED
    for (int from = 0; from < GROUP_WORDS; from += chain) {
        const int i = from / words;
        wi pairs[ROUNDED_COLUMNS][WORD_VECTORS];
        CPU_UNROLLED
        for (int w = from; w < from + chain; ++w) {
            wb numbers[WORD_VECTORS];
            CPU_UNROLLED
            for (int v = 0; v < WORD_VECTORS; ++v) {
                numbers[v] = a->numbers[w][v];
                if (f.size != ROUNDED_GROUP) KEEP_IN_REGISTER(numbers[v]);
            }
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const wi four = spread_word(x[c].numbers + g * ROUNDED_GROUP + w * WORD);
                CPU_UNROLLED
                for (int v = 0; v < WORD_VECTORS; ++v) {
                    const wi products = multiply_pairs(numbers[v], four);
                    if (w > from)
                        add_pairs_to(&pairs[c][v], products);
                    else if (word_bias(f.type))
                        pairs[c][v] = add_pairs(spread_word(&x[c].starts[g][i]), products);
                    else
                        pairs[c][v] = products;
                }
            }
        }
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            CPU_UNROLLED
            for (int v = 0; v < WORD_VECTORS; ++v) {
                const wi scale = has_whole_scales(f) ? (wi)a->pairs[i][v] : (wi)((wb_pairs){0} + 1);
                const wi wide = scale_pairs(pairs[c][v], scale);
                dots[c][v] = from == 0 ? wide : (wi)((vi)dots[c][v] + (vi)wide);
            }
        }
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < WORD_VECTORS; ++v) {
            scaled[c][v] = floats_of(dots[c][v]);
            if (f.size == ROUNDED_GROUP) scaled[c][v] *= a->scales[0][v];
        }
    }
}
#endif

// What sums of a group of 32 begin with, of which the types of groups of 16 have two.
CPU_INLINE void words_start(const enum ggml_type type, const int8_t *numbers, int32_t *out) {
    const bool has_halves = type == GGML_TYPE_Q3_K || type == GGML_TYPE_Q6_K;
    if (word_bias(type) == 0) return;
    out[0] = start_of_words(type, numbers, has_halves ? 16 : 32);
    if (has_halves) out[1] = start_of_words(type, numbers + 16, 16);
}

#if defined(__AVX2__) && !defined(__AVX512BW__)
// What rounded_lines.h needs of a part of n groups: starts by halves of groups, or sums and scales
// in the order of lanes.
CPU_INLINE void lines_start(const enum ggml_type type, int64_t n, struct rounded *out) {
    if (has_short_pairs(type) || type == GGML_TYPE_Q4_K || type == GGML_TYPE_IQ4_XS)
        pair_line_groups(n, out);
    if (has_short_pairs(type)) spread_short_sums(n, out);
    if (line_has_offsets(type)) spread_line_sums(type, out);
    if (type != GGML_TYPE_Q3_K && type != GGML_TYPE_Q6_K) return;
    for (int g = 0; g < LINE_GROUPS; ++g) {
        int32_t halves[2] = {0};
        words_start(type, out->numbers + g * ROUNDED_GROUP, halves);
        for (int i = 0; i < 8; ++i)
            out->starts[g][i] = halves[i / 4];
    }
}
#endif

// --- parts of rows -------------------------------------------------------------------------------

// Numbers of vector v of the rows, larger by word_bias().
CPU_INLINE void store_numbers(const enum ggml_type type, const wb *numbers, const int v,
                              struct word_group *out) {
    CPU_UNROLLED
    for (int i = 0; i < GROUP_WORDS; ++i)
        out->numbers[i][v] = numbers[i] + (uint8_t)(word_bias(type) - rounded_bias(type));
}

// The blocks of vector v of the rows that begin at `at`.
CPU_INLINE struct lane_blocks blocks_at(const struct block_format f, const struct word_tile *t,
                                        int64_t at, const int v, const bool repacked) {
    return repacked ? repacked_blocks(f, t->rows[0], at) : plain_blocks(t->rows + v * LANES, at);
}

// The same of blocks of 256, of which more than a few fields are read: `rows` will have where they
// begin.
CPU_INLINE struct lane_blocks large_blocks_at(const struct block_format f,
                                              const struct word_tile *t, int64_t at, const int v,
                                              const bool repacked, const char **rows) {
    if (repacked) return repacked_blocks(f, t->rows[0], at);
    CPU_UNROLLED
    for (int r = 0; r < LANES; ++r)
        rows[r] = t->rows[v * LANES + r] + at;
    return plain_blocks(rows, 0);
}

// Opens a block of 32 of vector v of the rows, which is group g of the part.
CPU_INLINE void open_words_32(const struct block_format f, const struct lane_blocks *blocks, int g,
                              const int v, struct word_group *out, struct word_part *part) {
    struct word_block b = {.scale = {0}};
    wb numbers[GROUP_WORDS];
    open_block_32(f, blocks, &b, numbers);
    store_numbers(f.type, numbers, v, out);
    out->scales[0][v] = b.scale;
    if (f.offset_at >= 0) part->offsets[g][v] = b.offset;
}

// Opens the block of 256 of vector v of the rows except for its groups.
CPU_INLINE void open_words_256(const struct block_format f, const struct lane_blocks *blocks,
                               const int v, struct word_block *b, struct word_part *out) {
    open_block_256(f, blocks, b);
    out->scale[v] = b->scale;
    if (f.offset_at < 0) return;
    out->offset[v] = b->offset;
    CPU_UNROLLED
    for (int g = 0; g < f.size / f.group; ++g)
        out->offsets[g][v] = word_scale(b->offsets[g / WORD], g % WORD);
}

// Group g of that block; they are opened in turn.
CPU_INLINE void open_group_256(const struct block_format f, const struct lane_blocks *blocks,
                               const int g, const int v, const struct word_block *b,
                               struct word_cache *cache, struct word_group *out) {
    const int groups = ROUNDED_GROUP / f.group;
    CPU_UNROLLED
    for (int i = 0; i < groups; ++i) {
        const int s = g * groups + i;
        if (has_whole_scales(f) && WORD_PAIRS)
            out->pairs[i][v] = (ww)scale_pair(b->scales[s / WORD], s % WORD);
        if (!WORD_PAIRS)
            out->scales[i][v] =
                has_whole_scales(f) ? word_scale(b->scales[s / WORD], s % WORD) : vf_set(1);
    }
    wb numbers[GROUP_WORDS];
    block_numbers_256(f, blocks, g, cache, numbers);
    store_numbers(f.type, numbers, v, out);
}

// Opens n groups of 32 of vector v of the rows, blocks from `at` on.
CPU_INLINE void open_part(const struct block_format f, const struct word_tile *t, int64_t at, int n,
                          const int v, struct word_part *out, const bool repacked) {
    if (f.size == ROUNDED_GROUP) {
        for (int g = 0; g < n; ++g, at += f.bytes) {
            const struct lane_blocks blocks = blocks_at(f, t, at, v, repacked);
            open_words_32(f, &blocks, g, v, &out->groups[g], out);
        }
        return;
    }
    const char *rows[LANES];
    const struct lane_blocks blocks = large_blocks_at(f, t, at, v, repacked, rows);
    struct word_block b = {.scale = {0}};
    struct word_cache cache;
    open_words_256(f, &blocks, v, &b, out);
    CPU_UNROLLED
    for (int g = 0; g < WORD_GROUPS; ++g)
        open_group_256(f, &blocks, g, v, &b, &cache, &out->groups[g]);
}

// Rows side by side are too many streams for hardware to follow: those of the next tile are asked
// for in one stream, a little with each group.
CPU_INLINE void fetch_next(const struct block_format f, struct word_tile *t) {
    enum { LINE_SIZE = 64 };
    const int bytes = WORD_ROWS * f.bytes / (f.size / ROUNDED_GROUP);
    CPU_UNROLLED
    for (int i = 0; i < bytes; i += LINE_SIZE)
        __builtin_prefetch(t->next + i, 0, 2);
    t->next += t->next_step;
}

// sums[c] += products of a group with group g of column c.
CPU_INLINE void add_group_products(const struct block_format f, const struct word_group *a,
                                   const struct rounded *x, int g, const int columns,
                                   vf (*sums)[WORD_VECTORS]) {
    vf scaled[ROUNDED_COLUMNS][WORD_VECTORS];
    dot_words_of_32(f, a, x, g, columns, scaled);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < WORD_VECTORS; ++v)
            sums[c][v] = fused(scaled[c][v], vf_set(x[c].scales[g]), sums[c][v]);
    }
}

// sums[c] += offsets of n groups times the sums of column c's.
CPU_INLINE void add_part_offsets(const struct block_format f, const struct word_part *p, int n,
                                 const struct rounded *x, const int columns,
                                 vf (*sums)[WORD_VECTORS]) {
    for (int g = 0; g < n; ++g) {
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const vf sum = vf_set(f.group == 16 ? x[c].sums[g] : x[c].sums32[g]);
            CPU_UNROLLED
            for (int v = 0; v < WORD_VECTORS; ++v)
                sums[c][v] = fused(p->offsets[g][v], sum, sums[c][v]);
        }
    }
}

// What blocks of 256 contribute is multiplied with their factors at last.
CPU_INLINE void add_factored(const struct block_format f, const struct word_part *p,
                             vf (*products)[WORD_VECTORS], vf (*offsets)[WORD_VECTORS],
                             const int columns, vf (*sums)[WORD_VECTORS]) {
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < WORD_VECTORS; ++v) {
            sums[c][v] = fused(products[c][v], p->scale[v], sums[c][v]);
            if (f.offset_at >= 0) sums[c][v] = fused(offsets[c][v], p->offset[v], sums[c][v]);
        }
    }
}

// Adds n groups of 32 of a part times those of the columns that begin at x. The first columns' ask
// for the next rows.
CPU_INLINE void add_part(const struct block_format f, struct word_tile *t, int four,
                         const struct word_part *p, int n, const struct rounded *x,
                         const int columns) {
    const bool is_short = f.size == ROUNDED_GROUP;
    vf products[ROUNDED_COLUMNS][WORD_VECTORS] = {0}, offsets[ROUNDED_COLUMNS][WORD_VECTORS] = {0};
    vf(*const sums)[WORD_VECTORS] = t->sums[four];
    for (int g = 0; g < (is_short ? n : WORD_GROUPS); ++g) {
        if (four == 0) fetch_next(f, t);
        add_group_products(f, &p->groups[g], x, g, columns, is_short ? sums : products);
    }
    if (f.offset_at >= 0)
        add_part_offsets(f, p, is_short ? n : f.size / f.group, x, columns,
                         is_short ? sums : offsets);
    if (!is_short) add_factored(f, p, products, offsets, columns, sums);
}

// Whether parts are opened group by group as they are multiplied, where one four of columns shares
// them: with 16 registers that isn't faster, nor with fifth bits of blocks of 256, for which
// registers are too few, as they are on AArch64 for more than one column of such blocks.
CPU_INLINE bool opens_meanwhile(const struct block_format f, const int columns) {
    if (VECTORS < 32 || f.type == GGML_TYPE_Q5_K) return false;
    return LANES == 16 || f.size == ROUNDED_GROUP || columns == 1;
}

// Groups that are opened together, so that their chains of products hide each other's latencies:
// registers are too few for more, or for two with fifth bits or of sums with their own scales.
CPU_INLINE int opened_together(const struct block_format f) {
    switch (f.type) {
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q2_K: return 1;
    default: return 2;
    }
}

// Opens n blocks of 32 that are groups from g on of a part, and adds their products.
CPU_INLINE void add_opened_32(const struct block_format f, struct word_tile *t, int64_t at, int g,
                              const int n, const struct rounded *x, const int columns,
                              struct word_part *p, const bool repacked) {
    struct word_group groups[2];
    CPU_UNROLLED
    for (int i = 0; i < n; ++i) {
        const struct lane_blocks blocks = blocks_at(f, t, at + i * f.bytes, 0, repacked);
        open_words_32(f, &blocks, g + i, 0, &groups[i], p);
        fetch_next(f, t);
    }
    CPU_UNROLLED
    for (int i = 0; i < n; ++i)
        add_group_products(f, &groups[i], x, g + i, columns, t->sums[0]);
}

// The same of a block of 256.
CPU_INLINE void add_opened_256(const struct block_format f, struct word_tile *t, int64_t at,
                               const struct rounded *x, const int columns, struct word_part *p,
                               vf (*products)[WORD_VECTORS], const bool repacked) {
    const int n = opened_together(f);
    const char *rows[LANES];
    const struct lane_blocks blocks = large_blocks_at(f, t, at, 0, repacked, rows);
    struct word_block b = {.scale = {0}};
    struct word_cache cache;
    open_words_256(f, &blocks, 0, &b, p);
    CPU_UNROLLED
    for (int g = 0; g < WORD_GROUPS; g += n) {
        struct word_group groups[2];
        CPU_UNROLLED
        for (int i = 0; i < n; ++i) {
            open_group_256(f, &blocks, g + i, 0, &b, &cache, &groups[i]);
            fetch_next(f, t);
        }
        CPU_UNROLLED
        for (int i = 0; i < n; ++i)
            add_group_products(f, &groups[i], x, g + i, columns, products);
    }
}

// The same of a part that is opened meanwhile, and takes no memory.
CPU_INLINE void add_as_opened(const struct block_format f, struct word_tile *t, int64_t at, int n,
                              const struct rounded *x, const int columns, const bool repacked) {
    const bool is_short = f.size == ROUNDED_GROUP;
    vf products[ROUNDED_COLUMNS][WORD_VECTORS] = {0}, offsets[ROUNDED_COLUMNS][WORD_VECTORS] = {0};
    struct word_part p;
    if (is_short) {
        int g = 0;
        for (const int step = opened_together(f); g + step <= n; g += step, at += step * f.bytes)
            add_opened_32(f, t, at, g, step, x, columns, &p, repacked);
        if (g < n) add_opened_32(f, t, at, g, 1, x, columns, &p, repacked);
    } else {
        add_opened_256(f, t, at, x, columns, &p, products, repacked);
    }
    if (f.offset_at >= 0)
        add_part_offsets(f, &p, is_short ? n : f.size / f.group, x, columns,
                         is_short ? t->sums[0] : offsets);
    if (!is_short) add_factored(f, &p, products, offsets, columns, t->sums[0]);
}

// Products of a tile with whole fours and then `last` columns, which is known when compiling.
CPU_INLINE void dot_words(const struct block_format f, struct word_tile *t, const int last,
                          const bool repacked) {
    const int64_t four = rounded_parts(t->k) * ROUNDED_COLUMNS; // from one to the next
    const int fours = last == ROUNDED_COLUMNS ? t->fours + 1 : t->fours;
    struct word_part part;
    memset(t->sums, 0, (size_t)(t->fours + 1) * sizeof(t->sums[0]));
    for (int64_t first = 0; first < t->k; first += ROUNDED_DEPTH) {
        const int64_t at = first / f.size * f.bytes, i = first / ROUNDED_DEPTH;
        const int n = (int)(MIN(t->k - first, ROUNDED_DEPTH) / ROUNDED_GROUP);
        if (opens_meanwhile(f, last) && t->fours == 0) {
            add_as_opened(f, t, at, n, t->x + i * last, last, repacked);
            continue;
        }
        for (int v = 0; v < WORD_VECTORS; ++v)
            open_part(f, t, at, n, v, &part, repacked);
        for (int q = 0; q < fours; ++q)
            add_part(f, t, q, &part, n, t->x + q * four + i * ROUNDED_COLUMNS, ROUNDED_COLUMNS);
        if (last < ROUNDED_COLUMNS)
            add_part(f, t, fours, &part, n, t->x + fours * four + i * last, last);
    }
}

// The same for any `last`, of which three are computed as four.
CPU_INLINE void dot_word_tile(const struct block_format f, struct word_tile *t, int last,
                              const bool repacked) {
    switch (last) {
    case 1: dot_words(f, t, 1, repacked); break;
    case 2: dot_words(f, t, 2, repacked); break;
    default: dot_words(f, t, ROUNDED_COLUMNS, repacked);
    }
}

#endif
#endif
