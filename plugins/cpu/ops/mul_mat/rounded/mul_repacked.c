// SPDX-License-Identifier: MIT
// Lanes hold rows: products with four bytes of a column, which are broadcast, are added to a lane,
// or, without an instruction for that, in 16 bits as long as they fit; scaled as whole numbers
// then, they are added as floats once for each scale of the column. What is rounded is said by
// intrinsics, so that compilers fuse alike for any columns.
#include "ops/mul_mat/rounded/mul_repacked.h"

#include "ops/mul_mat/rounded/repacked_lanes.h"

int CPU_FN(cpu_repacked_rows)(enum ggml_type type) {
    if (!CPU_REPACKS) return 0;
    switch ((int)type) {
#define CPU_BLOCK_ROW(NAME, ...) case GGML_TYPE_##NAME:
#include "ops/mul_mat/rounded/repacked_list.inl"
        return REPACKED_ROWS;
    default: return 0;
    }
}

#if defined(__AVX2__) && !defined(__AVX512F__)

#include "ops/mul_mat/rounded/rounded_lines.h"
#include "ops/mul_mat/rounded/word_dots.h"

enum { LINE = 64, AHEAD = 4096 }; // bytes: of the cache, and to what is asked for

// Eight rows with all columns.
struct tile {
    const char *rows;
    int64_t k;
    const struct rounded *x; // the first part of the columns
    int fours;               // of columns before the last ones
    __m256 sums[ROUNDED_FOURS][ROUNDED_COLUMNS];
};

enum { PLANES = 4 }; // groups of 32 of half a block, whose lowest bits share words

// The order in which planes are added, from `from` on, for any number that is taken at a time.
CPU_INLINE int plane_of(const int from, const int i) {
    return from + i / 2 + i % 2 * 2;
}

// What sums of products of the first or second 16 numbers of a group begin with, for the bias of
// the rows' numbers; columns were rounded for lanes or not.
CPU_INLINE __m256i start_of(const struct rounded *x, const int g, const int part,
                            const bool for_lanes) {
    return spread_word(&x->starts[g][for_lanes ? part : 4 * part]);
}

// sums[column][plane] = products of four words of each plane of half a block, which have one scale
// of the rows, with the columns. Planes are plane_of(from, 0) and on, 2 * n of them.
CPU_INLINE void add_sixteen(const enum ggml_type type, const char *words, const int half,
                            const int part, const struct rounded *x, const int columns,
                            const bool for_lanes, const int from, const int n,
                            __m256i (*sums)[PLANES]) {
    CPU_UNROLLED
    for (int i = 4 * part; i < 4 * part + 4; ++i) {
        CPU_UNROLLED
        for (int first = from; first < from + n; ++first) {
            vb w[2];
            lanes_numbers(type, words, half, i, first, w);
            CPU_UNROLLED
            for (int j = 0; j < 2; ++j) {
                const int plane = first + 2 * j, g = PLANES * half + plane;
                CPU_UNROLLED
                for (int c = 0; c < columns; ++c) {
                    const int8_t *four = x[c].numbers + g * ROUNDED_GROUP + i * REPACKED_WORD;
                    const __m256i products = _mm256_maddubs_epi16((__m256i)w[j], spread_word(four));
                    __m256i *sum = &sums[c][plane];
                    if (i == 4 * part && !rounded_bias(type)) {
                        *sum = products;
                        continue;
                    }
                    if (i == 4 * part) *sum = start_of(&x[c], g, part, for_lanes);
                    add_pairs_to(sum, products);
                }
            }
        }
    }
}

// parts[c] += products of half a block times column c, scaled. Words are read once for all planes
// of one column; registers hold the sums of two planes of more. Reading them for each plane, as
// they begin at 16 bytes of a cache line, took longer than arithmetic.
CPU_INLINE void add_half(const enum ggml_type type, const char *words, const vb *scales,
                         const int half, const struct rounded *x, const int columns,
                         const bool for_lanes, __m256 *parts) {
    const int n = columns > 1 ? 1 : 2;
    CPU_UNROLLED
    for (int from = 0; from < 2; from += n) {
        __m256i dots[ROUNDED_COLUMNS][PLANES];
        CPU_UNROLLED
        for (int part = 0; part < 2; ++part) {
            __m256i sums[ROUNDED_COLUMNS][PLANES];
            add_sixteen(type, words, half, part, x, columns, for_lanes, from, n, sums);
            CPU_UNROLLED
            for (int i = 0; i < 2 * n; ++i) {
                const int plane = plane_of(from, i), group = 2 * (PLANES * half + plane) + part;
                const __m256i scale = lanes_pair(scales[group / 4], group % 4);
                CPU_UNROLLED
                for (int c = 0; c < columns; ++c) {
                    const __m256i scaled = _mm256_madd_epi16(sums[c][plane], scale);
                    dots[c][plane] = part == 0 ? scaled : _mm256_add_epi32(dots[c][plane], scaled);
                }
            }
        }
        CPU_UNROLLED
        for (int i = 0; i < 2 * n; ++i) {
            const int plane = plane_of(from, i);
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const __m256 of_column = _mm256_set1_ps(x[c].scales[PLANES * half + plane]);
                parts[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[c][plane]), of_column, parts[c]);
            }
        }
    }
}

// Adds what minima contribute: each times the sum of a column's group.
CPU_INLINE void add_minima(const struct block_format f, const vb *minima, const struct rounded *x,
                           const int columns, __m256 *offsets) {
    const int groups = f.size / f.group;
    CPU_UNROLLED
    for (int g = 0; g < groups; ++g) {
        const __m256 minimum = lanes_float(lanes_signed(f.type), minima[g / 4], g % 4);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m256 sum = _mm256_set1_ps(x[c].sums[g]);
            offsets[c] = _mm256_fmadd_ps(minimum, sum, offsets[c]);
        }
    }
}

// One block of each row times a part of each column.
CPU_INLINE void add_block(const struct block_format f, const char *block,
                          const struct rounded *part, const int columns, const bool for_lanes,
                          __m256 *sums) {
    const char *words = block + repacked_words_at(repacked_format(f.type, REPACKED_ROWS));
    __m256 parts[ROUNDED_COLUMNS], offsets[ROUNDED_COLUMNS], scale, offset;
    vb scales[SCALE_WORDS], minima[SCALE_WORDS];
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        parts[c] = offsets[c] = _mm256_setzero_ps();
    lanes_scales(f.type, words, scales, minima);
    lanes_factors(f, block, words, &scale, &offset);
    CPU_UNROLLED
    for (int half = 0; half < 2; ++half)
        add_half(f.type, words, scales, half, part, columns, for_lanes, parts);
    scale = _mm256_mul_ps(scale, _mm256_set1_ps(0x1p-8f)); // of lanes_pair()
    if (f.offset_at >= 0) add_minima(f, minima, part, columns, offsets);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        sums[c] = _mm256_fmadd_ps(parts[c], scale, sums[c]);
        if (f.offset_at >= 0) sums[c] = _mm256_fmadd_ps(offsets[c], offset, sums[c]);
    }
}

// With whole fours and then `last` columns. Rows are read in one stream, which is asked for ahead.
CPU_INLINE void dot_tile(const struct block_format f, struct tile *t, const int last,
                         const bool for_lanes) {
    const int size = REPACKED_ROWS * f.bytes;
    const int64_t four = rounded_parts(t->k) * ROUNDED_COLUMNS; // from one to the next
    const int fours = last == ROUNDED_COLUMNS ? t->fours + 1 : t->fours;
    const char *block = t->rows;
    memset(t->sums, 0, (size_t)(t->fours + 1) * sizeof(t->sums[0]));
    for (int64_t i = 0; i < t->k / f.size; ++i, block += size) {
        for (int at = 0; at < size; at += LINE)
            __builtin_prefetch(block + AHEAD + at);
        for (int q = 0; q < fours && for_lanes; ++q)
            add_block(f, block, t->x + q * four + i * ROUNDED_COLUMNS, ROUNDED_COLUMNS, true,
                      t->sums[q]);
        if (last < ROUNDED_COLUMNS)
            add_block(f, block, t->x + fours * four + i * last, last, for_lanes, t->sums[fours]);
    }
}

// A function for each type, in which everything about the type is a constant; three columns are
// computed as four, of which the last is not stored. One or two columns alone weren't rounded for
// lanes.
typedef void (*dot_fn)(struct tile *t, int last);

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void dot_##name(struct tile *t, int last) {                                             \
        const struct block_format f = BLOCK_FORMAT(NAME, name, __VA_ARGS__);                       \
        if (last == 1 && t->fours == 0)                                                            \
            dot_tile(f, t, 1, false);                                                              \
        else if (last == 2 && t->fours == 0)                                                       \
            dot_tile(f, t, 2, false);                                                              \
        else if (last == 1)                                                                        \
            dot_tile(f, t, 1, true);                                                               \
        else if (last == 2)                                                                        \
            dot_tile(f, t, 2, true);                                                               \
        else                                                                                       \
            dot_tile(f, t, ROUNDED_COLUMNS, true);                                                 \
    }
#include "ops/mul_mat/rounded/repacked_list.inl"

static const dot_fn dot_of[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, ...) [GGML_TYPE_##NAME] = dot_##name,
#include "ops/mul_mat/rounded/repacked_list.inl"
};

// `memory` holds the columns as cpu_round_columns() left them.
void CPU_FN(cpu_mul_repacked)(const struct gemm_rows *rows, const struct gemm_piece *piece,
                              const struct gemm_column *columns, int64_t n_columns, void *memory) {
    const dot_fn dot = dot_of[rows->type];
    struct tile t = {.k = rows->k, .x = memory};
    t.fours = (int)rounded_before(n_columns) / ROUNDED_COLUMNS;
    const int64_t end = piece->row + piece->end;
    for (int64_t r = piece->row + piece->begin; r < end; r += REPACKED_ROWS) {
        t.rows = rows->data + (size_t)r * rows->stride;
        dot(&t, rounded_last(n_columns));
        for (int c = 0; c < n_columns; ++c)
            _mm256_storeu_ps(columns[c].y + r, t.sums[c / ROUNDED_COLUMNS][c % ROUNDED_COLUMNS]);
    }
}

#elif defined(__AVX512F__) || (defined(CPU_NEON) && defined(__ARM_FEATURE_DOTPROD))

#include "ops/mul_mat/rounded/word_dots.h"

enum { AHEAD = 8192 }; // bytes to what is asked for

// A function for each type, in which everything about the type is a constant.
typedef void (*dot_fn)(struct word_tile *t, int last);

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void dot_##name(struct word_tile *t, int last) {                                        \
        const struct block_format f = BLOCK_FORMAT(NAME, name, __VA_ARGS__);                       \
        dot_word_tile(f, t, last, true);                                                           \
    }
#include "ops/mul_mat/rounded/repacked_list.inl"

static const dot_fn dot_of[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, ...) [GGML_TYPE_##NAME] = dot_##name,
#include "ops/mul_mat/rounded/repacked_list.inl"
};

// `memory` holds the columns as cpu_round_columns() left them. Rows are read in one stream.
void CPU_FN(cpu_mul_repacked)(const struct gemm_rows *rows, const struct gemm_piece *piece,
                              const struct gemm_column *columns, int64_t n_columns, void *memory) {
    const int64_t end = piece->row + piece->end;
    struct word_tile t = {.k = rows->k, .x = memory};
    t.fours = (int)rounded_before(n_columns) / ROUNDED_COLUMNS;
    t.next_step = REPACKED_ROWS * rows->stride / (size_t)MAX(rows->k / ROUNDED_GROUP, 1);
    for (int64_t r = piece->row + piece->begin; r < end; r += REPACKED_ROWS) {
        t.rows[0] = rows->data + (size_t)r * rows->stride;
        t.next = t.rows[0] + AHEAD;
        dot_of[rows->type](&t, rounded_last(n_columns));
        for (int c = 0; c < n_columns; ++c)
            vf_store(columns[c].y + r, t.sums[c / ROUNDED_COLUMNS][c % ROUNDED_COLUMNS][0]);
    }
}

#else

// Never called: levels without it don't offer the memory.
void CPU_FN(cpu_mul_repacked)(const struct gemm_rows *rows, const struct gemm_piece *piece,
                              const struct gemm_column *columns, int64_t n_columns, void *memory) {
    (void)rows, (void)piece, (void)columns, (void)n_columns, (void)memory;
    GGML_UNREACHABLE();
}

#endif
