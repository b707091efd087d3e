// SPDX-License-Identifier: MIT
// Products and sums of few rows of queries with rows of Q8_0, whose blocks are numbers of eight
// bits with one scale; those of some other types become such blocks first. Queries are rounded to
// numbers of 16 bits (ggml: of eight), so that a block's products are added up as whole numbers.
// Weights are multiplied with a block's scales first. A row's arithmetic is the same however many
// are computed together.
#include "ops/attention/attention_tiles.h"
#include "ops/attention/word_products.h"
#include "ops/round_row.h"

// --- blocks --------------------------------------------------------------------------------------

#define OPEN_BLOCKS(name)                                                                          \
    for (int64_t i = 0; i < n / QK8_0; ++i) {                                                      \
        const block_##name *block = (const block_##name *)(const void *)row + i;                   \
        struct opened o;                                                                           \
        memcpy(to, &block->d, sizeof(block->d));                                                   \
        memcpy(to + offsetof(block_q8_0, qs), open_##name(block, &o), QK8_0);                      \
        to += sizeof(block_q8_0);                                                                  \
    }

void CPU_FN(cpu_attention_open_bytes)(enum ggml_type type, const char *row, int64_t n, char *to) {
    switch ((int)type) {
    case GGML_TYPE_Q4_0: OPEN_BLOCKS(q4_0) break;
    case GGML_TYPE_Q5_0: OPEN_BLOCKS(q5_0) break;
    default: OPEN_BLOCKS(iq4_nl) break;
    }
}

// --- scores --------------------------------------------------------------------------------------

#if defined(__AVX512VNNI__)

#include "simd/words.h"

// A block of a row of queries: each number is 256 times `high` - 128, and `low`.
struct digits {
    uint8_t low[QK8_0], high[QK8_0];
};

_Static_assert(sizeof(struct digits) == QK8_0 * sizeof(int16_t), "in the place of the numbers");

float CPU_FN(cpu_attention_round)(const float *x, int64_t n, int16_t *y) {
    const float scale = round_row(x, n, y, sizeof(*y));
    for (int64_t i = 0; i < n; i += QK8_0) {
        int16_t numbers[QK8_0];
        struct digits digits;
        memcpy(numbers, y + i, sizeof(numbers));
        for (int j = 0; j < QK8_0; ++j) {
            digits.low[j] = (uint8_t)numbers[j];
            digits.high[j] = (uint8_t)((numbers[j] >> 8) + 128);
        }
        memcpy(y + i, &digits, sizeof(digits));
    }
    return scale;
}

enum { KEY_WORDS = QK8_0 / WORD };

// A block of each of LANES keys, which are lanes.
struct key_block {
    wi words[KEY_WORDS];
    wi bias; // what the digits' products are to begin with
    vf scales;
};

CPU_INLINE struct key_block open_keys(const char *const *keys, int64_t at) {
    struct key_block b = {.bias = (wi){0}};
    ww words[KEY_WORDS];
    CPU_UNROLLED
    for (int i = 0; i < KEY_WORDS; i += 16 / WORD)
        rows_words(keys, at + (int64_t)offsetof(block_q8_0, qs) + i * WORD, words + i);
    CPU_UNROLLED
    for (int i = 0; i < KEY_WORDS; ++i) {
        b.words[i] = (wi)words[i];
        b.bias = _mm512_dpbusd_epi32(b.bias, _mm512_set1_epi8(1), b.words[i]);
    }
    b.bias = (wi)(-((vi)b.bias << 15));
    b.scales = rows_floats(keys, at + (int64_t)offsetof(block_q8_0, d));
    return b;
}

// Products with a block of a query, whose digits are at `query`, without its scale.
CPU_INLINE vf multiply_block(const struct key_block *b, const char *query) {
    wi low = b->bias, high = (wi){0};
    CPU_UNROLLED
    for (int i = 0; i < KEY_WORDS; ++i) {
        const char *at = query + i * WORD;
        low = _mm512_dpbusd_epi32(low, spread_word(at), b->words[i]);
        high =
            _mm512_dpbusd_epi32(high, spread_word(at + offsetof(struct digits, high)), b->words[i]);
    }
    return floats_of((wi)((vi)low + ((vi)high << 8))) * b->scales;
}

// Lanes hold keys: a scale is that of 16 products, and nothing is added across lanes.
void CPU_FN(cpu_attention_block_scores)(const struct attention_lines *keys,
                                        const struct attention_words *queries, int n_rows,
                                        float *scores, int64_t score_stride) {
    const int64_t n_blocks = keys->size / QK8_0;
    const size_t stride = (size_t)queries->stride * sizeof(*queries->words);
    struct ahead ahead = ahead_of(keys, (keys->n + LANES - 1) / LANES * n_blocks * (n_rows + 1));
    for (int key = 0; key < keys->n; key += LANES) {
        const char *k[LANES];
        for (int j = 0; j < LANES; j += KEYS_TOGETHER)
            find_keys(keys, key + j, k + j);
        for (int64_t i = 0; i < n_blocks; ++i) {
            const struct key_block block = open_keys(k, i * (int64_t)sizeof(block_q8_0));
            fetch_steps(&ahead, 1);
            const char *query = (const char *)(queries->words + i * QK8_0);
            float *to = scores + key;
            for (int r = 0; r < n_rows; ++r, query += stride, to += score_stride) {
                vf sum = multiply_block(&block, query);
                if (i > 0) sum += vf_load(to);
                vf_store(to, i + 1 < n_blocks ? sum : sum * queries->scales[r]);
                fetch_steps(&ahead, 1);
            }
        }
    }
}

#else

// Rows of K that are multiplied with so many queries together; KEYS_TOGETHER with a single one.
enum { ROWS = 4, KEYS = VECTORS == 32 ? 4 : 2 };

float CPU_FN(cpu_attention_round)(const float *x, int64_t n, int16_t *y) {
    return round_row(x, n, y, sizeof(*y));
}

// The scales of a block of each row of K.
CPU_INLINE void open_key_scales(const char *const *keys, size_t at, float *scales, const int n) {
    CPU_UNROLLED
    for (int j = 0; j < n; j += QUAD) {
        uint64_t halves = 0;
        CPU_UNROLLED
        for (int i = 0; i < MIN(n, QUAD); ++i)
            halves |= half_of_four(keys[j + i] + at + offsetof(block_q8_0, d), i);
        four_floats(scales + j, halves);
    }
}

// A tile of scores, without the scales of queries; rows and n_keys are constants where this is
// inlined.
CPU_INLINE void multiply_tile(const char *const *keys, int64_t n, const int16_t *q, int64_t stride,
                              float *scores, int64_t score_stride, struct ahead *ahead,
                              const int rows, const int n_keys) {
    vf sums[ROWS * KEYS_TOGETHER];
    CPU_UNROLLED
    for (int i = 0; i < rows * n_keys; ++i)
        sums[i] = (vf){0};
    for (int64_t i = 0; i < n; i += QK8_0, q += QK8_0) {
        const size_t at = (size_t)(i / QK8_0) * sizeof(block_q8_0);
        float scales[KEYS_TOGETHER];
        open_key_scales(keys, at, scales, n_keys);
        CPU_UNROLLED
        for (int j = 0; j < n_keys; ++j) {
            vw k[QK8_0 / WORDS];
            CPU_UNROLLED
            for (int part = 0; part < QK8_0 / WORDS; ++part)
                k[part] = vw_from_i8(keys[j] + at + offsetof(block_q8_0, qs) + part * WORDS);
            CPU_UNROLLED
            for (int r = 0; r < rows; ++r) {
                vi products = {0};
                CPU_UNROLLED
                for (int part = 0; part < QK8_0 / WORDS; ++part)
                    products =
                        vw_add_products(products, k[part], vw_load(q + r * stride + part * WORDS));
                sums[r * n_keys + j] += __builtin_convertvector(products, vf) * scales[j];
            }
        }
        fetch_steps(ahead, 1);
    }
    store_scores(sums, scores, score_stride, rows, n_keys);
}

void CPU_FN(cpu_attention_block_scores)(const struct attention_lines *keys,
                                        const struct attention_words *queries, int n_rows,
                                        float *scores, int64_t score_stride) {
    const int64_t stride = queries->stride;
    const int tiles = n_rows / ROWS * (KEYS_TOGETHER / KEYS) + n_rows % ROWS;
    struct ahead ahead = ahead_of(keys, steps_over(keys->n, tiles) * (keys->size / QK8_0));
    for (int key = 0; key < keys->n; key += KEYS_TOGETHER) {
        const char *k[KEYS_TOGETHER];
        find_keys(keys, key, k);
        int r = 0;
        for (; r + ROWS <= n_rows; r += ROWS) {
            for (int j = 0; j < KEYS_TOGETHER; j += KEYS)
                multiply_tile(k + j, keys->size, queries->words + r * stride, stride,
                              scores + r * score_stride + key + j, score_stride, &ahead, ROWS,
                              KEYS);
        }
        for (; r < n_rows; ++r)
            multiply_tile(k, keys->size, queries->words + r * stride, stride,
                          scores + r * score_stride + key, score_stride, &ahead, 1, KEYS_TOGETHER);
    }
    for (int r = 0; r < n_rows; ++r) {
        for (int key = 0; key < keys->n; ++key)
            scores[r * score_stride + key] *= queries->scales[r];
    }
}

#endif

// --- sums ----------------------------------------------------------------------------------------

// The scales of a block of each value, 0 up to a multiple of 16 values.
CPU_INLINE void open_scales(const struct attention_lines *values, int64_t block, float *scales) {
    const size_t stride = values->stride;
    const char *value = values->data + (size_t)block * sizeof(block_q8_0) + offsetof(block_q8_0, d);
    int j = 0;
    for (; j + QUAD <= values->n; j += QUAD, value += QUAD * stride) {
        uint64_t halves = 0;
        CPU_UNROLLED
        for (int i = 0; i < QUAD; ++i)
            halves |= half_of_four(value + (size_t)i * stride, i);
        four_floats(scales + j, halves);
    }
    uint64_t halves = 0;
    for (int i = 0; j + i < values->n; ++i)
        halves |= half_of_four(value + (size_t)i * stride, i);
    for (const int end = (int)attention_padded(values->n); j < end; j += QUAD, halves = 0)
        four_floats(scales + j, halves);
}

// Weights times the values' scales, 0 where `skips` and the weight is.
CPU_INLINE void scale_weights(const float *weights, const float *scales, int n, float *scaled,
                              const bool skips) {
    for (int j = 0; j < n; j += LANES) {
        const vf weight = vf_load(weights + j), product = weight * vf_load(scales + j);
        vf_store(scaled + j, skips ? vf_select(weight == (vf){0}, weight, product) : product);
    }
}

// All sums of some rows, block by block, `wide` vectors at most at a time.
CPU_INLINE void add_rows(const struct attention_lines *values, const struct sum_tile *t,
                         bool fetches, const bool skips, const int rows, const int wide) {
    const int width = MIN(wide, QK8_0 / LANES);
    const int64_t step = width * LANES;
    struct ahead ahead = ahead_of(values, fetches ? values->size / step * values->n : 0);
    float scales[ATTENTION_KEYS], scaled[SUM_ROWS * ATTENTION_KEYS];
    const struct sum_tile of_block = {scaled, t->out, ATTENTION_KEYS, t->out_stride};
    for (int64_t i = 0; i < values->size; i += step) {
        if (i % QK8_0 == 0) open_scales(values, i / QK8_0, scales);
        for (int r = 0; r < rows && i % QK8_0 == 0; ++r)
            scale_weights(t->weights + r * t->weight_stride, scales, values->n,
                          scaled + r * ATTENTION_KEYS, skips);
        add_tile(GGML_TYPE_Q8_0, values, &of_block, i, &ahead, rows, width, false, false);
    }
}

void CPU_FN(cpu_attention_block_sums)(const struct attention_lines *values, const float *weights,
                                      int64_t weight_stride, int n_rows, float *out,
                                      int64_t out_stride) {
    struct sum_tile t = {weights, out, weight_stride, out_stride};
    for (int r = 0, rows; r < n_rows; r += rows, t = rows_after(&t, rows)) {
        rows = rows_at_once(n_rows - r);
        switch (rows) {
        case 1: add_rows(values, &t, r == 0, false, 1, ONE_WIDE); break;
        case 2: add_rows(values, &t, r == 0, false, 2, 2 * SUM_WIDE); break;
        default: add_rows(values, &t, r == 0, false, SUM_ROWS, SUM_WIDE); break;
        }
    }
}

void CPU_FN(cpu_attention_special_block_sums)(const struct attention_lines *values,
                                              const float *weights, float *out) {
    const struct sum_tile t = {weights, out, 0, 0};
    add_rows(values, &t, false, true, 1, ONE_WIDE);
}
