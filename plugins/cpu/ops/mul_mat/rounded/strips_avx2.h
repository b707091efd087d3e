// SPDX-License-Identifier: MIT
// Panels of rows and their products with strips where no instruction adds four products of bytes to
// a lane: the part of gemm_rounded.c, which includes this, for AVX2. Bytes without sign (rows) are
// multiplied with such that have one (columns); pairs of products are added in 16 bits for as long
// as their sum fits, then widened. Where rows need all eight bits no sum of two fits: both sides
// are words of 16 bits then, of which an instruction adds two products to a lane.
#ifndef CPU_STRIPS_AVX2_H
#define CPU_STRIPS_AVX2_H

#include "ops/mul_mat/rounded/panel_words.h"
#include "ops/mul_mat/rounded/repacked_lanes.h"
#include "simd/words.h"

enum {
    COLUMN_BIAS = 0,
    RUN = 4, // numbers of a row, or of a column, that lie side by side
    VECTORS_PER_PANEL = 2,
    VECTOR_ROWS = ROWS / VECTORS_PER_PANEL,
    ALL_BITS = 255, // numbers that no bias makes small enough
};

// Numbers of a type as bytes without sign: what is added to them, and how large they become.
struct number_range {
    int bias, most;
};

// By how much the numbers of a type are biased, and the largest biased one, which decides how many
// products of two bytes a 16-bit sum can hold.
CPU_INLINE struct number_range number_range_of(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_Q1_0:
    case GGML_TYPE_TQ1_0:
    case GGML_TYPE_TQ2_0: return (struct number_range){1, 2};
    case GGML_TYPE_Q2_0: return (struct number_range){1, 3};
    case GGML_TYPE_Q2_K: return (struct number_range){0, 3};
    case GGML_TYPE_Q3_K: return (struct number_range){4, 7};
    case GGML_TYPE_Q4_0: return (struct number_range){8, 15};
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q4_K: return (struct number_range){0, 15};
    case GGML_TYPE_IQ1_S:
    case GGML_TYPE_IQ1_M: return (struct number_range){9, 18};
    case GGML_TYPE_MXFP4:
    case GGML_TYPE_NVFP4: return (struct number_range){12, 24};
    case GGML_TYPE_Q5_0: return (struct number_range){16, 31};
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q5_K: return (struct number_range){0, 31};
    case GGML_TYPE_Q6_K: return (struct number_range){32, 63};
    case GGML_TYPE_IQ2_XXS:
    case GGML_TYPE_IQ2_XS:
    case GGML_TYPE_IQ2_S:
    case GGML_TYPE_IQ3_XXS:
    case GGML_TYPE_IQ3_S: return (struct number_range){63, 126};
    default: return (struct number_range){0, ALL_BITS};
    }
}

// --- panels --------------------------------------------------------------------------------------

// y[i * stride + r] = x[r][i], for four rows.
static void lay_four(const float *x, int64_t x_stride, int64_t n, float *y, int64_t stride) {
    const float *rows[QUAD];
    for (int r = 0; r < QUAD; ++r)
        rows[r] = x + r * x_stride;
    interleave_4(rows, n, y, stride);
}

// Lays numbers, scales and offsets of opened rows side by side. What the bias of numbers adds to
// products is proportional to the sums of columns, as offsets are.
CPU_INLINE void lay_rows(const struct block_format f, struct opened_rows *o,
                         const struct panel_rows *to) {
    const int bias = number_range_of(f.type).bias;
    const int64_t groups = to->k / f.group;
    for (int r = 0; r < ROWS; ++r) {
        for (int64_t j = 0; j < to->k; j += BYTES)
            vb_store(o->numbers[r] + j, vb_load(o->numbers[r] + j) + (uint8_t)bias);
        for (int64_t g = 0; g < groups && f.offset_at < 0; ++g)
            o->offsets[r][g] = (float)-bias * o->scales[r][g];
    }
    for (int r = 0; r < ROWS; r += QUAD) {
        // Four numbers count as a lane whose bits are moved.
        lay_four((const float *)(const void *)o->numbers[r], STRIP_DEPTH / 4, to->k / 4,
                 (float *)(void *)to->panel->numbers + r, ROWS);
        lay_four(o->scales[r], STRIP_GROUPS, groups, to->panel->scales + r, ROWS);
        lay_four(o->offsets[r], STRIP_GROUPS, groups, to->panel->offsets + r, ROWS);
    }
}

// --- panels of repacked rows ---------------------------------------------------------------------

// Elements [k0, k0 + k) of ROWS rows, or of n_rows and the last eight of them again.
CPU_INLINE void pack_eights(const struct block_format f, const struct gemm_rows *rows, int64_t row,
                            int64_t n_rows, int64_t k0, int64_t k, struct strip_panel *panel) {
    for (int r = 0; r < ROWS; r += REPACKED_ROWS) {
        const int64_t from = row + MIN(r, n_rows - REPACKED_ROWS);
        const char *block = rows->data + (size_t)from * rows->stride +
                            (size_t)(k0 / f.size * f.bytes * REPACKED_ROWS);
        for (int64_t i = 0; i < k; i += f.size, block += REPACKED_ROWS * f.bytes)
            lanes_to_panel(f, block, i, r, ROWS, panel);
    }
}

// False for types that aren't repacked.
static bool pack_repacked(const struct gemm_rows *rows, int64_t row, int64_t n_rows, int64_t k0,
                          int64_t k, size_t ahead, struct strip_panel *panel) {
    (void)ahead;
    switch ((int)rows->type) {
#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    case GGML_TYPE_##NAME:                                                                         \
        pack_eights(BLOCK_FORMAT(NAME, name, __VA_ARGS__), rows, row, n_rows, k0, k, panel);       \
        return true;
#include "ops/mul_mat/rounded/repacked_list.inl"
    default: return false;
    }
}

// --- products ------------------------------------------------------------------------------------

// Fours of a row whose products with columns are added in 16 bits: a power of two.
CPU_INLINE int chain_of(const int most) {
    return most < 17 ? 8 : most < 33 ? 4 : most < 65 ? 2 : 1;
}

// What is read with the index or the pointer is read again, rather than kept from before.
#define KEEP_APART(index) __asm__("" : "+r"(index))

// Pairs of products of `chain` fours of the rows with as many columns as are computed together.
CPU_INLINE void add_chain(const int8_t *numbers, const uint8_t (*x)[STRIP_COLUMNS][RUN],
                          const int chain, const int columns, __m256i (*pairs)[VECTORS_PER_PANEL]) {
    CPU_UNROLLED
    for (int t = 0; t < chain; ++t) {
        __m256i w[VECTORS_PER_PANEL];
        CPU_UNROLLED
        for (int v = 0; v < VECTORS_PER_PANEL; ++v)
            w[v] = _mm256_load_si256((const __m256i *)(const void *)numbers +
                                     t * VECTORS_PER_PANEL + v);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const __m256i four = spread_word(x[t][c]);
            CPU_UNROLLED
            for (int v = 0; v < VECTORS_PER_PANEL; ++v) {
                const __m256i products = _mm256_maddubs_epi16(w[v], four);
                pairs[c][v] = t == 0 ? products : _mm256_add_epi16(pairs[c][v], products);
                KEEP_IN_REGISTER(pairs[c][v]);
            }
        }
    }
}

// Products of a group, numbers from `four` fours on, with columns from the first of x on.
CPU_INLINE void multiply_group(const struct strip_panel *a, const uint8_t (*x)[STRIP_COLUMNS][RUN],
                               const int group, const int most, int64_t four, const int columns,
                               __m256i (*dots)[VECTORS_PER_PANEL]) {
    const int fours = group / 4, chain = MIN(chain_of(most), fours);
    const int8_t *numbers = a->numbers + four * 4 * ROWS;
    const __m256i unit = _mm256_set1_epi16(1);
    CPU_UNROLLED
    for (int t = 0; t < fours; t += chain) {
        __m256i pairs[STRIP_COLUMNS][VECTORS_PER_PANEL];
        KEEP_APART(x);
        add_chain(numbers + t * 4 * ROWS, x + t, chain, columns, pairs);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            CPU_UNROLLED
            for (int v = 0; v < VECTORS_PER_PANEL; ++v) {
                const __m256i wide = _mm256_madd_epi16(pairs[c][v], unit);
                dots[c][v] = t == 0 ? wide : _mm256_add_epi32(dots[c][v], wide);
                KEEP_IN_REGISTER(dots[c][v]);
            }
        }
    }
}

// The same of words: a lane of a panel's vector has two numbers of its row.
CPU_INLINE void multiply_words(const struct strip_panel *a, const int16_t (*x)[STRIP_COLUMNS][2],
                               int64_t two, const int columns, __m256i (*dots)[VECTORS_PER_PANEL]) {
    const __m256i *numbers = (const __m256i *)(const void *)a->numbers + two * VECTORS_PER_PANEL;
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < VECTORS_PER_PANEL; ++v)
            dots[c][v] = _mm256_setzero_si256();
    }
    CPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
        CPU_UNROLLED
        for (int i = 0; i < ROUNDED_GROUP / 4; ++i) {
            const int t = half * ROUNDED_GROUP / 4 + i;
            __m256i w[VECTORS_PER_PANEL];
            CPU_UNROLLED
            for (int v = 0; v < VECTORS_PER_PANEL; ++v)
                w[v] = _mm256_load_si256(numbers + t * VECTORS_PER_PANEL + v);
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const __m256i pair = spread_word(x[t][c]);
                CPU_UNROLLED
                for (int v = 0; v < VECTORS_PER_PANEL; ++v) {
                    dots[c][v] = _mm256_add_epi32(dots[c][v], _mm256_madd_epi16(w[v], pair));
                    KEEP_IN_REGISTER(dots[c][v]);
                }
            }
        }
    }
}

// As many columns together as registers hold sums of: those of 16 bits and, where they are widened
// meanwhile, those of 32.
CPU_INLINE int columns_at_a_time(const int group, const int most) {
    const bool widens_once = chain_of(most) >= group / 4;
    return widens_once || chain_of(most) == 1 ? STRIP_COLUMNS : STRIP_COLUMNS / 2;
}

// Adds the products of a group, scaled, to the sums of some columns from `first` on. Those of
// floats stay in the first level of cache: registers are for those of whole numbers.
CPU_INLINE void add_group(const struct strip_panel *a, const struct strip *b, int64_t g,
                          int64_t of_strip, const int group, const int most, int first,
                          const int columns, float (*sums)[ROWS]) {
    __m256i dots[STRIP_COLUMNS][VECTORS_PER_PANEL];
    if (most == ALL_BITS)
        multiply_words(a, (const int16_t(*)[STRIP_COLUMNS][2])b->words[of_strip * group / 2][first],
                       g * group / 2, columns, dots);
    else
        multiply_group(a,
                       (const uint8_t(*)[STRIP_COLUMNS][RUN])(
                           b->numbers + of_strip * group * STRIP_COLUMNS + first * RUN),
                       group, most, g * group / 4, columns, dots);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const __m256 scale = _mm256_set1_ps(b->scales[of_strip * group / ROUNDED_GROUP][first + c]);
        const __m256 sum = _mm256_set1_ps(b->sums[of_strip][first + c]);
        CPU_UNROLLED
        for (int v = 0; v < VECTORS_PER_PANEL; ++v) {
            float *y = sums[c] + v * VECTOR_ROWS;
            const int64_t at = g * ROWS + v * VECTOR_ROWS;
            const __m256 product =
                _mm256_mul_ps(_mm256_cvtepi32_ps(dots[c][v]), _mm256_load_ps(a->scales + at));
            __m256 so_far = _mm256_load_ps(y);
            if (most != ALL_BITS)
                so_far = _mm256_fmadd_ps(_mm256_load_ps(a->offsets + at), sum, so_far);
            _mm256_store_ps(y, _mm256_fmadd_ps(product, scale, so_far));
        }
    }
}

// Sums of some columns from `first` on.
CPU_INLINE void multiply_columns(const struct strip_panel *a, const struct strip *b, int64_t k,
                                 const int group, const int most, int first, const int columns,
                                 float (*sums)[ROWS]) {
    const int64_t parts = most == ALL_BITS ? 2 : 1, groups = STRIP_DEPTH / group / parts;
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int i = 0; i < ROWS; i += VECTOR_ROWS)
            _mm256_store_ps(sums[c] + i, _mm256_setzero_ps());
    }
    for (int64_t part = 0; part < parts; ++part) {
        for (int64_t g = 0; g < MIN(k / group - part * groups, groups); ++g)
            add_group(a, b + part, part * groups + g, g, group, most, first, columns, sums);
    }
}

// Stores the sums of a whole tile, or adds them to what is there.
static void add_tile(const struct tile *to, const float (*sums)[ROWS]) {
    CPU_UNROLLED
    for (int c = 0; c < STRIP_COLUMNS; ++c) {
        float *y = to->columns[c].y + to->row;
        CPU_UNROLLED
        for (int r = 0; r < ROWS; r += VECTOR_ROWS) {
            const __m256 sum = _mm256_load_ps(sums[c] + r);
            _mm256_storeu_ps(y + r, to->first ? sum : _mm256_add_ps(sum, _mm256_loadu_ps(y + r)));
        }
    }
}

// The last two are constants where this is inlined.
CPU_INLINE void multiply_tile(const struct strip_panel *a, const struct strip *b,
                              const struct tile *to, const int group, const int most) {
    float sums[STRIP_COLUMNS][ROWS] __attribute__((aligned(32)));
    const int step = columns_at_a_time(group, most), half = STRIP_COLUMNS / 2;
    if (step > half && to->n_columns <= half) {
        multiply_columns(a, b, to->k, group, most, 0, half, sums);
    } else {
        for (int first = 0; first < to->n_columns; first += step) {
            KEEP_APART(first);
            multiply_columns(a, b, to->k, group, most, first, step, sums + first);
        }
    }
    if (to->n_columns == STRIP_COLUMNS && to->n_rows == ROWS)
        add_tile(to, (const float(*)[ROWS])sums);
    else
        add_part(to, (const float(*)[PANEL_ROWS])sums);
}

#define MULTIPLY(group, most)                                                                      \
    static void multiply_##group##_##most(const struct strip_panel *a, const struct strip *b,      \
                                          const struct tile *to) {                                 \
        multiply_tile(a, b, to, group, most);                                                      \
    }
MULTIPLY(16, 32)
MULTIPLY(16, 64)
MULTIPLY(16, 127)
MULTIPLY(32, 16)
MULTIPLY(32, 32)
MULTIPLY(32, 127)
MULTIPLY(32, 255)

// The fewer bits a type's numbers have, the more products are added in 16 bits before the sum is
// widened.
static multiply_fn choose_multiply(enum ggml_type type, int group, bool offset, int64_t n_vectors) {
    (void)offset, (void)n_vectors;
    const int most = number_range_of(type).most;
    if (group == 16 && most < 33) return multiply_16_32;
    if (most < 17) return multiply_32_16;
    if (most < 33) return multiply_32_32;
    if (most < 65) return multiply_16_64;
    if (most < 128) return group == 16 ? multiply_16_127 : multiply_32_127;
    return multiply_32_255;
}

#endif
