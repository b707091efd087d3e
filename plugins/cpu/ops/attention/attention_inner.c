// SPDX-License-Identifier: MIT
// Products and sums of few rows of queries: vectors hold elements of a row. A row's arithmetic is
// the same however many are computed together.
#include "ops/attention/attention_inner.h"

#include "simd/bytes.h"

enum {
    LINE = 64,                         // bytes of the cache
    KEYS = QUAD,                       // rows of K that are multiplied together
    ROWS = VECTORS == 32 ? 4 : 2,      // with as many queries
    SUM_ROWS = 4,                      // rows of sums that are added to together
    SUM_WIDE = VECTORS == 32 ? 4 : 2,  // vectors of each
    ONE_WIDE = VECTORS == 32 ? 16 : 8, // vectors of a row that is added to alone
};

// Where the rows ahead are asked for, a line at a time. Many lines at once would wait for each
// other, and arithmetic for them.
struct ahead {
    const char *row;
    size_t at, bytes, stride; // in a row, of it, from it to the next
    uint32_t per_step, due;   // lines, as parts of ONE_LINE
};

enum { ONE_LINE = 1 << 16 };

// All rows ahead, spread over so many steps.
static inline struct ahead ahead_of(const struct attention_lines *lines, int64_t steps) {
    const int64_t in_row = (int64_t)(lines->ahead_bytes + LINE - 1) / LINE;
    const int64_t n = steps > 0 ? lines->n_ahead * in_row * ONE_LINE / steps : 0;
    return (struct ahead){.row = lines->ahead,
                          .bytes = lines->ahead_bytes,
                          .stride = lines->ahead_stride,
                          .per_step = (uint32_t)MIN(n, UINT32_MAX / 2)};
}

// Asks for what is due. Called once for each step.
CPU_INLINE void fetch_step(struct ahead *a) {
    for (a->due += a->per_step; a->due >= ONE_LINE; a->due -= ONE_LINE) {
        __builtin_prefetch(a->row + a->at, 0, 2);
        a->at += LINE;
        if (a->at >= a->bytes) {
            a->at = 0;
            a->row += a->stride;
        }
    }
}

CPU_INLINE size_t size_of(const enum ggml_type type) {
    return type == GGML_TYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

CPU_INLINE vf vf_from(const enum ggml_type type, const char *x) {
    if (type == GGML_TYPE_F32) return vf_load((const float *)(const void *)x);
    return type == GGML_TYPE_F16 ? vf_from_f16(x) : vf_from_bf16(x);
}

// The first n < LANES elements, the others 0.
CPU_INLINE vf vf_from_part(const enum ggml_type type, const char *x, int64_t n) {
    uint32_t part[LANES] = {0};
    memcpy(part, x, size_of(type) * (size_t)n);
    return vf_from(type, (const char *)part);
}

// Adds the products of vectors of KEYS rows of K with those of the queries.
CPU_INLINE void add_products(vf (*sums)[KEYS], const vf *k, const float *q, int64_t stride,
                             const int rows) {
    CPU_UNROLLED
    for (int r = 0; r < rows; ++r) {
        const vf x = vf_load(q + r * stride);
        CPU_UNROLLED
        for (int j = 0; j < KEYS; ++j)
            sums[r][j] += k[j] * x;
    }
}

// A tile of scores; type and rows are constants where this is inlined.
CPU_INLINE void multiply_tile(const enum ggml_type type, const char *const *keys, int64_t n,
                              const float *q, int64_t stride, float *scores, int64_t score_stride,
                              struct ahead *ahead, const int rows) {
    vf sums[ROWS][KEYS], k[KEYS];
    CPU_UNROLLED
    for (int r = 0; r < rows; ++r) {
        CPU_UNROLLED
        for (int j = 0; j < KEYS; ++j)
            sums[r][j] = (vf){0};
    }
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        CPU_UNROLLED
        for (int j = 0; j < KEYS; ++j)
            k[j] = vf_from(type, keys[j] + size_of(type) * (size_t)i);
        add_products(sums, k, q + i, stride, rows);
        fetch_step(ahead);
    }
    if (i < n) {
        for (int j = 0; j < KEYS; ++j)
            k[j] = vf_from_part(type, keys[j] + size_of(type) * (size_t)i, n - i);
        add_products(sums, k, q + i, stride, rows);
    }
    CPU_UNROLLED
    for (int r = 0; r < rows; ++r) {
        if (LANES > 1) {
            quad_store(scores + r * score_stride, vf_sum_each(sums[r]));
            continue;
        }
        for (int j = 0; j < KEYS; ++j)
            scores[r * score_stride + j] = vf_sum(sums[r][j]);
    }
}

// All scores of the block, by tiles of KEYS keys and up to ROWS rows of queries.
CPU_INLINE void multiply_all(const enum ggml_type type, const struct attention_lines *keys,
                             const float *queries, int64_t stride, int n_rows, float *scores,
                             int64_t score_stride) {
    const int64_t tiles = (int64_t)((keys->n + KEYS - 1) / KEYS) * (n_rows / ROWS + n_rows % ROWS);
    struct ahead ahead = ahead_of(keys, tiles * (keys->size / LANES));
    for (int key = 0; key < keys->n; key += KEYS) {
        const char *k[KEYS];
        for (int j = 0; j < KEYS; ++j)
            k[j] = keys->data + (size_t)MIN(key + j, keys->n - 1) * keys->stride;
        int r = 0;
        for (; r + ROWS <= n_rows; r += ROWS)
            multiply_tile(type, k, keys->size, queries + r * stride, stride,
                          scores + r * score_stride + key, score_stride, &ahead, ROWS);
        for (; r < n_rows; ++r)
            multiply_tile(type, k, keys->size, queries + r * stride, stride,
                          scores + r * score_stride + key, score_stride, &ahead, 1);
    }
}

void CPU_FN(cpu_attention_scores)(const struct attention_lines *keys, const float *queries,
                                  int64_t query_stride, int n_rows, float *scores,
                                  int64_t score_stride) {
#define MULTIPLY(type) multiply_all(type, keys, queries, query_stride, n_rows, scores, score_stride)
    switch (keys->type) {
    case GGML_TYPE_F16: MULTIPLY(GGML_TYPE_F16); break;
    case GGML_TYPE_BF16: MULTIPLY(GGML_TYPE_BF16); break;
    default: MULTIPLY(GGML_TYPE_F32); break;
    }
#undef MULTIPLY
}

// Weights and sums of rows.
struct sum_tile {
    const float *weights;
    float *out;
    int64_t weight_stride, out_stride;
};

// rows x width vectors of sums, `width` from element i on; the last of them may have fewer than
// LANES elements: the values end there. All but the first three and i are constants where this is
// inlined.
CPU_INLINE void add_tile(const enum ggml_type type, const struct attention_lines *values,
                         const struct sum_tile *t, int64_t i, struct ahead *ahead, const int rows,
                         const int width, const bool is_part, const bool skips) {
    vf sums[SUM_ROWS][ONE_WIDE];
    CPU_UNROLLED
    for (int r = 0; r < rows; ++r) {
        CPU_UNROLLED
        for (int v = 0; v < width; ++v)
            sums[r][v] = vf_load(t->out + r * t->out_stride + i + v * LANES);
    }
    const char *value = values->data + size_of(type) * (size_t)i;
    for (int j = 0; j < values->n; ++j, value += values->stride) {
        vf x[ONE_WIDE];
        CPU_UNROLLED
        for (int v = 0; v < width; ++v) {
            x[v] = is_part ? vf_from_part(type, value, values->size - i)
                           : vf_from(type, value + size_of(type) * (size_t)(v * LANES));
        }
        CPU_UNROLLED
        for (int r = 0; r < rows; ++r) {
            const vf weight = vf_set(t->weights[r * t->weight_stride + j]);
            CPU_UNROLLED
            for (int v = 0; v < width; ++v) {
                // Not the sum is chosen but what is added to it, so that both ways are rounded
                // alike.
                const vf added = skips ? vf_select(weight == (vf){0}, weight, x[v]) : x[v];
                sums[r][v] += added * weight;
            }
        }
        if (ahead) fetch_step(ahead);
    }
    CPU_UNROLLED
    for (int r = 0; r < rows; ++r) {
        CPU_UNROLLED
        for (int v = 0; v < width; ++v)
            vf_store(t->out + r * t->out_stride + i + v * LANES, sums[r][v]);
    }
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
    int r = 0;
    while (r < n_rows) {
        const int rows = n_rows - r >= SUM_ROWS ? SUM_ROWS : n_rows - r >= 2 ? 2 : 1;
        switch (rows) {
        case 1: add_rows(type, values, &t, r == 0, 1, ONE_WIDE); break;
        case 2: add_rows(type, values, &t, r == 0, 2, 2 * SUM_WIDE); break;
        default: add_rows(type, values, &t, r == 0, SUM_ROWS, SUM_WIDE); break;
        }
        t.weights += rows * t.weight_stride;
        t.out += rows * t.out_stride;
        r += rows;
    }
}

void CPU_FN(cpu_attention_sums)(const struct attention_lines *values, const float *weights,
                                int64_t weight_stride, int n_rows, float *out, int64_t out_stride) {
    const struct sum_tile t = {weights, out, weight_stride, out_stride};
    switch (values->type) {
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
    switch (values->type) {
    case GGML_TYPE_F16: add_special(GGML_TYPE_F16, values, &t); break;
    case GGML_TYPE_BF16: add_special(GGML_TYPE_BF16, values, &t); break;
    default: add_special(GGML_TYPE_F32, values, &t); break;
    }
}
