// SPDX-License-Identifier: MIT
// Lanes hold rows: products with four bytes of a column, which are broadcast, are added in 16 bits
// as long as they fit, scaled as whole numbers, and added as floats once for each scale of the
// column. What is rounded is said by intrinsics, so that compilers fuse alike for any columns.
#include "ops/mul_mat/rounded/mul_repacked.h"

#include "ops/mul_mat/rounded/repacked_lanes.h"

#if defined(__AVX2__) && !defined(__AVX512F__)

#include "simd/words.h"

enum { LINE = 64, AHEAD = 4096 }; // bytes: of the cache, and to what is asked for

// Eight rows with up to ROUNDED_COLUMNS columns.
struct tile {
    const char *rows;
    int64_t k;
    const struct rounded *x; // the first part of all columns
    __m256 sums[ROUNDED_COLUMNS];
};

// Whole sums of group g of 32 times a column, in which groups have their scales.
CPU_INLINE void add_group(const struct block_format f, const char *words, const vb *scales,
                          const int g, const int8_t *const *x, const int columns, __m256i *dots) {
    const int chain = lanes_scaled_words(f);
    CPU_UNROLLED
    for (int from = 0; from < GROUP_WORDS; from += chain) {
        const int group = g * ROUNDED_GROUP / f.group + from / chain;
        const __m256i scale = lanes_pair(lanes_signed(f.type), scales[group / 4], group % 4);
        __m256i pairs[ROUNDED_COLUMNS];
        CPU_UNROLLED
        for (int i = from; i < from + chain; ++i) {
            const __m256i w = (__m256i)lanes_numbers(f.type, words, g, i);
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const __m256i products =
                    _mm256_maddubs_epi16(w, spread_word(x[c] + i * REPACKED_WORD));
                pairs[c] = i == from ? products : _mm256_add_epi16(pairs[c], products);
            }
        }
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m256i scaled = _mm256_madd_epi16(pairs[c], scale);
            dots[c] = from == 0 ? scaled : _mm256_add_epi32(dots[c], scaled);
        }
    }
}

// Adds what minima, or the bias of numbers, contribute: each times the sum of a column's group.
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
CPU_INLINE void add_block(const struct block_format f, struct tile *t, const char *block,
                          const struct rounded *part, const int columns) {
    const char *words = block + repacked_words_at(repacked_format(f.type));
    __m256 parts[ROUNDED_COLUMNS], offsets[ROUNDED_COLUMNS], scale, offset;
    vb scales[SCALE_WORDS], minima[SCALE_WORDS];
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        parts[c] = offsets[c] = _mm256_setzero_ps();
    lanes_scales(f.type, words, scales, minima);
    lanes_factors(f, block, words, &scale, &offset);
    CPU_UNROLLED
    for (int g = 0; g < f.size / ROUNDED_GROUP; ++g) {
        const int8_t *x[ROUNDED_COLUMNS];
        __m256i dots[ROUNDED_COLUMNS];
        for (int c = 0; c < columns; ++c)
            x[c] = part[c].numbers + g * ROUNDED_GROUP;
        add_group(f, words, scales, g, x, columns, dots);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m256 of_column = _mm256_set1_ps(part[c].scales[g]);
            const __m256 dot = _mm256_cvtepi32_ps(dots[c]);
            parts[c] = _mm256_fmadd_ps(dot, of_column, parts[c]);
        }
    }
    add_minima(f, minima, part, columns, offsets);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        t->sums[c] = _mm256_fmadd_ps(parts[c], scale, t->sums[c]);
        t->sums[c] = _mm256_fmadd_ps(offsets[c], offset, t->sums[c]);
    }
}

// Rows are read in one stream, which is asked for ahead.
CPU_INLINE void dot_tile(const struct block_format f, struct tile *t, const int columns) {
    const int size = REPACKED_ROWS * f.bytes;
    const char *block = t->rows;
    const struct rounded *x = t->x;
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        t->sums[c] = _mm256_setzero_ps();
    for (int64_t first = 0; first < t->k; first += f.size, block += size, x += columns) {
        for (int i = 0; i < size; i += LINE)
            __builtin_prefetch(block + AHEAD + i);
        add_block(f, t, block, x, columns);
    }
}

// A function for each type, in which everything about the type is a constant; three columns are
// computed as four, of which the last is not stored.
typedef void (*dot_fn)(struct tile *t, int64_t columns);

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void dot_##name(struct tile *t, int64_t columns) {                                      \
        const struct block_format f = BLOCK_FORMAT(NAME, name, __VA_ARGS__);                       \
        if (columns == 1)                                                                          \
            dot_tile(f, t, 1);                                                                     \
        else if (columns == 2)                                                                     \
            dot_tile(f, t, 2);                                                                     \
        else                                                                                       \
            dot_tile(f, t, ROUNDED_COLUMNS);                                                       \
    }
#include "ops/mul_mat/rounded/repacked_list.inl"

static const dot_fn dot_of[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, ...) [GGML_TYPE_##NAME] = dot_##name,
#include "ops/mul_mat/rounded/repacked_list.inl"
};

// `memory` holds the columns as cpu_round_columns() left them.
void CPU_FN(cpu_mul_repacked)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                              const struct gemm_column *columns, int64_t n_columns, void *memory) {
    const dot_fn dot = dot_of[rows->type];
    struct tile t = {.k = rows->k, .x = memory};
    for (int64_t r = row; r < row + n_rows; r += REPACKED_ROWS) {
        t.rows = rows->data + (size_t)r * rows->stride;
        dot(&t, n_columns);
        for (int c = 0; c < n_columns; ++c)
            _mm256_storeu_ps(columns[c].y + r, t.sums[c]);
    }
}

#else

// Never called: levels without it don't offer the memory.
void CPU_FN(cpu_mul_repacked)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                              const struct gemm_column *columns, int64_t n_columns, void *memory) {
    (void)rows, (void)row, (void)n_rows, (void)columns, (void)n_columns, (void)memory;
    GGML_UNREACHABLE();
}

#endif
