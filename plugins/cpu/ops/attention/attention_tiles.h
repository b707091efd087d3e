// SPDX-License-Identifier: MIT
// What the inner kernels of attention for few queries have in common: scores that are added up,
// rows that are summed, and what is asked for meanwhile.
#ifndef CPU_ATTENTION_TILES_H
#define CPU_ATTENTION_TILES_H

#include "ops/attention/attention.h"
#include "ops/attention/attention_inner.h"
#include "types/blocks.h"

enum {
    LINE = 64,                         // bytes of the cache
    KEYS_TOGETHER = 8,                 // rows of K whose addresses are looked up together
    VALUES_TOGETHER = 2,               // values between which nothing is asked for
    SUM_ROWS = 4,                      // rows of sums that are added to together
    SUM_WIDE = VECTORS == 32 ? 4 : 2,  // vectors of each
    ONE_WIDE = VECTORS == 32 ? 16 : 8, // vectors of a row that is added to alone
};

// Where the rows ahead are asked for, a line at a time. Many lines at once would wait for each
// other, and arithmetic for them.
struct ahead {
    const char *row;
    size_t at, bytes, stride; // in a row, of it, from it to the next
    int64_t per_step, due;    // lines, as parts of ONE_LINE
};

enum { ONE_LINE = 1 << 16 };

// All rows ahead, spread over so many steps.
static inline struct ahead ahead_of(const struct attention_lines *lines, int64_t steps) {
    const int64_t in_row = (int64_t)(lines->ahead_bytes + LINE - 1) / LINE;
    return (struct ahead){.row = lines->ahead,
                          .bytes = lines->ahead_bytes,
                          .stride = lines->ahead_stride,
                          .per_step = steps > 0 ? lines->n_ahead * in_row * ONE_LINE / steps : 0};
}

// Asks for what is due after so many steps.
CPU_INLINE void fetch_steps(struct ahead *a, const int steps) {
    for (a->due += steps * a->per_step; a->due >= ONE_LINE; a->due -= ONE_LINE) {
        __builtin_prefetch(a->row + a->at, 0, 2);
        a->at += LINE;
        if (a->at >= a->bytes) {
            a->at = 0;
            a->row += a->stride;
        }
    }
}

CPU_INLINE size_t size_of(const enum ggml_type type) {
    if (type == GGML_TYPE_Q8_0) return 1;
    return type == GGML_TYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

// Where element i of a row lies: of a block, its number.
CPU_INLINE size_t place_of(const enum ggml_type type, int64_t i) {
    if (type != GGML_TYPE_Q8_0) return size_of(type) * (size_t)i;
    return (size_t)(i / QK8_0) * sizeof(block_q8_0) + offsetof(block_q8_0, qs) +
           (size_t)(i % QK8_0);
}

// Elements, or numbers of a block.
CPU_INLINE vf vf_from(const enum ggml_type type, const char *x) {
    if (type == GGML_TYPE_Q8_0) return vf_from_i8((const int8_t *)x);
    if (type == GGML_TYPE_F32) return vf_load((const float *)(const void *)x);
    return type == GGML_TYPE_F16 ? vf_from_f16(x) : vf_from_bf16(x);
}

// The first n < LANES elements, the others 0.
CPU_INLINE vf vf_from_part(const enum ggml_type type, const char *x, int64_t n) {
    uint32_t part[LANES] = {0};
    memcpy(part, x, size_of(type) * (size_t)n);
    return vf_from(type, (const char *)part);
}

// Tiles of so many of KEYS_TOGETHER keys, over n keys.
static inline int64_t steps_over(int n, int tiles) {
    return (int64_t)((n + KEYS_TOGETHER - 1) / KEYS_TOGETHER) * tiles;
}

// KEYS_TOGETHER rows of K from `key` on, the last one again beyond it.
CPU_INLINE void find_keys(const struct attention_lines *lines, int key, const char **keys) {
    for (int j = 0; j < KEYS_TOGETHER; ++j)
        keys[j] = lines->data + (size_t)MIN(key + j, lines->n - 1) * lines->stride;
}

// Adds up the lanes of rows x n_keys sums, row by row, eight or more. Both are constants where this
// is inlined.
CPU_INLINE void store_scores(const vf *sums, float *scores, int64_t stride, const int rows,
                             const int n_keys) {
    CPU_UNROLLED
    for (int i = 0; i < rows * n_keys; i += 8) {
        float y[8];
        vf_sum_eight(sums + i, y);
        CPU_UNROLLED
        for (int j = 0; j < 8; j += n_keys)
            memcpy(scores + (i + j) / n_keys * stride + (i + j) % n_keys, y + j,
                   sizeof(float) * (size_t)n_keys);
    }
}

// Weights and sums of rows.
struct sum_tile {
    const float *weights;
    float *out;
    int64_t weight_stride, out_stride;
};

// Adds a value, `width` vectors from `value` on, times its weight to each row's sums. `n` is how
// many elements the last vector has where `is_part`. All but the pointers, j and n are constants
// where this is inlined.
CPU_INLINE void add_value(const enum ggml_type type, const char *value, const struct sum_tile *t,
                          int j, vf sums[SUM_ROWS][ONE_WIDE], const int rows, const int width,
                          const bool is_part, int64_t n, const bool skips) {
    vf x[ONE_WIDE];
    CPU_UNROLLED
    for (int v = 0; v < width; ++v) {
        x[v] = is_part ? vf_from_part(type, value, n)
                       : vf_from(type, value + size_of(type) * (size_t)(v * LANES));
    }
    CPU_UNROLLED
    for (int r = 0; r < rows; ++r) {
        const vf weight = vf_set(t->weights[r * t->weight_stride + j]);
        CPU_UNROLLED
        for (int v = 0; v < width; ++v) {
            // Not the sum is chosen but what is added to it, so that both ways are rounded alike.
            const vf added = skips ? vf_select(weight == (vf){0}, weight, x[v]) : x[v];
            sums[r][v] += added * weight;
        }
    }
}

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
    const char *value = values->data + place_of(type, i);
    const size_t stride = values->stride;
    const int64_t n = values->size - i;
    int j = 0;
    for (; j + VALUES_TOGETHER <= values->n; j += VALUES_TOGETHER) {
        CPU_UNROLLED
        for (int k = 0; k < VALUES_TOGETHER; ++k, value += stride)
            add_value(type, value, t, j + k, sums, rows, width, is_part, n, skips);
        if (ahead) fetch_steps(ahead, VALUES_TOGETHER);
    }
    for (; j < values->n; ++j, value += stride)
        add_value(type, value, t, j, sums, rows, width, is_part, n, skips);
    CPU_UNROLLED
    for (int r = 0; r < rows; ++r) {
        CPU_UNROLLED
        for (int v = 0; v < width; ++v)
            vf_store(t->out + r * t->out_stride + i + v * LANES, sums[r][v]);
    }
}

// Of n rows as many as are added to together.
static inline int rows_at_once(int n) {
    return n >= SUM_ROWS ? SUM_ROWS : n >= 2 ? 2 : 1;
}

static inline struct sum_tile rows_after(const struct sum_tile *t, int rows) {
    return (struct sum_tile){t->weights + rows * t->weight_stride, t->out + rows * t->out_stride,
                             t->weight_stride, t->out_stride};
}

#endif
