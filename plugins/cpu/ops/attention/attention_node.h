// SPDX-License-Identifier: MIT
// What the two ways to compute flash_attn_ext have in common.
#ifndef CPU_ATTENTION_NODE_H
#define CPU_ATTENTION_NODE_H

#include "base/kernel.h"
#include "ops/attention/attention.h"
#include "simd/convert.h"

struct attention {
    const struct ggml_tensor *dst, *q, *k, *v, *mask;
    const float *sinks;
    float scale, max_bias, softcap;
    int64_t group; // heads that share K and V
};

// Rows of one group of heads: row r is head r % group of token r / group.
struct attention_rows {
    int64_t batch;
    int64_t first_head;
    int64_t first_row;
    int n;
};

// Token, head and batch of the rows' r-th.
static inline struct ggml_row attention_row(const struct attention *a,
                                            const struct attention_rows *rows, int r) {
    const int64_t row = rows->first_row + r;
    return (struct ggml_row){row / a->group, rows->first_head + row % a->group, rows->batch};
}

// The mask of a row of Q.
static inline const char *attention_mask(const struct attention *a, struct ggml_row at) {
    const struct ggml_row from = {at.i1, at.i2 % a->mask->ne[2], at.i3 % a->mask->ne[3]};
    return ggml_row_data(a->mask, from);
}

// Rows of K and V from `key` on that the rows of Q attend to.
static inline const char *attention_keys(const struct attention *a,
                                         const struct attention_rows *rows, int64_t key) {
    const int64_t head = rows->first_head / (a->q->ne[2] / a->k->ne[2]);
    return ggml_row_data(a->k, (struct ggml_row){key, head, rows->batch});
}

// Several heads of queries share a head of values.
static inline const char *attention_values(const struct attention *a,
                                           const struct attention_rows *rows, int64_t key) {
    const int64_t head = rows->first_head / (a->q->ne[2] / a->v->ne[2]);
    return ggml_row_data(a->v, (struct ggml_row){key, head, rows->batch});
}

// Stores the row of dst: what was summed relative to the largest score, divided by the weights'
// sum. The sink counts in it, but has no value.
void CPU_FN(cpu_attention_store)(const struct attention *a, struct ggml_row at, float largest,
                                 float sum, float *out);

// Computes n <= ATTENTION_ROWS rows; work holds attention_work_floats of the node.
void CPU_FN(cpu_attention_many)(const struct attention *a, const struct attention_rows *rows,
                                float *work);

#endif
