// SPDX-License-Identifier: MIT
// Products and sums of few rows of queries with rows of floats: vectors hold elements of a row. A
// row's arithmetic is the same however many are computed together.
#include "ops/attention/attention_tiles.h"

// Rows of K that are multiplied with so many queries together; KEYS_TOGETHER with a single one.
enum { ROWS = VECTORS == 32 ? 4 : 2, KEYS = 4 };

// Adds the products of vectors of rows of K with those of the queries.
CPU_INLINE void add_products(vf *sums, const vf *k, const float *q, int64_t stride, const int rows,
                             const int n_keys) {
    CPU_UNROLLED
    for (int r = 0; r < rows; ++r) {
        const vf x = vf_load(q + r * stride);
        CPU_UNROLLED
        for (int j = 0; j < n_keys; ++j)
            sums[r * n_keys + j] += k[j] * x;
    }
}

// A tile of scores; type, rows and n_keys are constants where this is inlined.
CPU_INLINE void multiply_tile(const enum ggml_type type, const char *const *keys, int64_t n,
                              const float *q, int64_t stride, float *scores, int64_t score_stride,
                              struct ahead *ahead, const int rows, const int n_keys) {
    vf sums[ROWS * KEYS_TOGETHER], k[KEYS_TOGETHER];
    CPU_UNROLLED
    for (int i = 0; i < rows * n_keys; ++i)
        sums[i] = (vf){0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        CPU_UNROLLED
        for (int j = 0; j < n_keys; ++j)
            k[j] = vf_from(type, keys[j] + place_of(type, i));
        add_products(sums, k, q + i, stride, rows, n_keys);
        fetch_steps(ahead, 1);
    }
    if (i < n) {
        CPU_UNROLLED
        for (int j = 0; j < n_keys; ++j)
            k[j] = vf_from_part(type, keys[j] + place_of(type, i), n - i);
        add_products(sums, k, q + i, stride, rows, n_keys);
    }
    store_scores(sums, scores, score_stride, rows, n_keys);
}

// All scores of the block, by tiles.
CPU_INLINE void multiply_all(const enum ggml_type type, const struct attention_lines *keys,
                             const float *queries, int64_t stride, int n_rows, float *scores,
                             int64_t score_stride) {
    const int tiles = n_rows / ROWS * (KEYS_TOGETHER / KEYS) + n_rows % ROWS;
    struct ahead ahead = ahead_of(keys, steps_over(keys->n, tiles) * (keys->size / LANES));
    for (int key = 0; key < keys->n; key += KEYS_TOGETHER, scores += KEYS_TOGETHER) {
        const char *k[KEYS_TOGETHER];
        find_keys(keys, key, k);
        int r = 0;
        for (; r + ROWS <= n_rows; r += ROWS) {
            for (int j = 0; j < KEYS_TOGETHER; j += KEYS)
                multiply_tile(type, k + j, keys->size, queries + r * stride, stride,
                              scores + r * score_stride + j, score_stride, &ahead, ROWS, KEYS);
        }
        for (; r < n_rows; ++r)
            multiply_tile(type, k, keys->size, queries + r * stride, stride,
                          scores + r * score_stride, score_stride, &ahead, 1, KEYS_TOGETHER);
    }
}

void CPU_FN(cpu_attention_scores)(const struct attention_lines *keys, const float *queries,
                                  int64_t query_stride, int n_rows, float *scores,
                                  int64_t score_stride) {
#define MULTIPLY(type) multiply_all(type, keys, queries, query_stride, n_rows, scores, score_stride)
    switch ((int)keys->type) {
    case GGML_TYPE_F16: MULTIPLY(GGML_TYPE_F16); break;
    case GGML_TYPE_BF16: MULTIPLY(GGML_TYPE_BF16); break;
    default: MULTIPLY(GGML_TYPE_F32); break;
    }
#undef MULTIPLY
}

// All sums of some rows, `wide` vectors at a time, then one; meanwhile shares of the rows ahead are
// asked for.
CPU_INLINE void add_rows(const enum ggml_type type, const struct attention_lines *values,
                         const struct sum_tile *t, bool fetches, const int rows, const int wide) {
    const int64_t n = values->size, tiles = fetches ? n / (wide * LANES) : 0;
    struct ahead ahead = ahead_of(values, tiles * values->n);
    int64_t i = 0;
    for (; i + wide * LANES <= n; i += wide * LANES)
        add_tile(type, values, t, i, &ahead, rows, wide, false, false);
    for (; i + LANES <= n; i += LANES)
        add_tile(type, values, t, i, NULL, rows, 1, false, false);
    if (i < n) add_tile(type, values, t, i, NULL, rows, 1, true, false);
}

CPU_INLINE void add_all(const enum ggml_type type, const struct attention_lines *values,
                        const struct sum_tile *all, int n_rows) {
    struct sum_tile t = *all;
    for (int r = 0, rows; r < n_rows; r += rows, t = rows_after(&t, rows)) {
        rows = rows_at_once(n_rows - r);
        switch (rows) {
        case 1: add_rows(type, values, &t, r == 0, 1, ONE_WIDE); break;
        case 2: add_rows(type, values, &t, r == 0, 2, 2 * SUM_WIDE); break;
        default: add_rows(type, values, &t, r == 0, SUM_ROWS, SUM_WIDE); break;
        }
    }
}

void CPU_FN(cpu_attention_sums)(const struct attention_lines *values, const float *weights,
                                int64_t weight_stride, int n_rows, float *out, int64_t out_stride) {
    const struct sum_tile t = {weights, out, weight_stride, out_stride};
    switch ((int)values->type) {
    case GGML_TYPE_F16: add_all(GGML_TYPE_F16, values, &t, n_rows); break;
    case GGML_TYPE_BF16: add_all(GGML_TYPE_BF16, values, &t, n_rows); break;
    default: add_all(GGML_TYPE_F32, values, &t, n_rows); break;
    }
}

CPU_INLINE void add_special(const enum ggml_type type, const struct attention_lines *values,
                            const struct sum_tile *t) {
    const int64_t n = values->size;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        add_tile(type, values, t, i, NULL, 1, 1, false, true);
    if (i < n) add_tile(type, values, t, i, NULL, 1, 1, true, true);
}

void CPU_FN(cpu_attention_special_sums)(const struct attention_lines *values, const float *weights,
                                        float *out) {
    const struct sum_tile t = {weights, out, 0, 0};
    switch ((int)values->type) {
    case GGML_TYPE_F16: add_special(GGML_TYPE_F16, values, &t); break;
    case GGML_TYPE_BF16: add_special(GGML_TYPE_BF16, values, &t); break;
    default: add_special(GGML_TYPE_F32, values, &t); break;
    }
}
