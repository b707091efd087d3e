// SPDX-License-Identifier: MIT
// The inner kernels of flash_attn_ext for few queries: products of rows of K, and weighted sums of
// rows of V, both read as they lie.
#ifndef CPU_ATTENTION_INNER_H
#define CPU_ATTENTION_INNER_H

#include "base/kernel.h"

// Rows of K or V, `stride` bytes from each other.
struct attention_lines {
    enum ggml_type type;
    const char *data;
    size_t stride;
    int64_t size;      // elements of a row
    int n;             // ATTENTION_KEYS at most
    const char *ahead; // rows that are asked for meanwhile
    size_t ahead_stride, ahead_bytes;
    int n_ahead; // 0: none
};

// Of F32, F16 or BF16: scores[r * score_stride + key] = <queries[r], key> for n_rows rows of
// queries, which are query_stride floats from each other and end in zeros up to a multiple of 16.
// Scores are written up to a multiple of 16 keys.
void CPU_FN(cpu_attention_scores)(const struct attention_lines *keys, const float *queries,
                                  int64_t query_stride, int n_rows, float *scores,
                                  int64_t score_stride);

// Of F32, F16 or BF16: out[r * out_stride + i] += sum over keys of weights[r * weight_stride + key]
// * value[key][i], for rows of `out` whose sizes are rounded up to a multiple of 16.
void CPU_FN(cpu_attention_sums)(const struct attention_lines *values, const float *weights,
                                int64_t weight_stride, int n_rows, float *out, int64_t out_stride);

// The same for one row, to which values of weight 0 contribute nothing, not even their NaN.
void CPU_FN(cpu_attention_special_sums)(const struct attention_lines *values, const float *weights,
                                        float *out);

// Types whose blocks are, or become exactly, those of Q8_0: 32 whole numbers with one scale.
static inline bool attention_has_bytes(enum ggml_type type) {
    return type == GGML_TYPE_Q8_0 || type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q5_0 ||
           type == GGML_TYPE_IQ4_NL;
}

// n elements of a row of such a type, other than Q8_0, as blocks of Q8_0.
void CPU_FN(cpu_attention_open_bytes)(enum ggml_type type, const char *row, int64_t n, char *to);

// Rows of queries as cpu_attention_round() leaves them, `stride` numbers from each other, and their
// scales.
struct attention_words {
    const int16_t *words;
    int64_t stride;
    const float *scales;
};

// Rounds n elements of a row, whole blocks of 32, to whole numbers of 16 bits, which y holds as the
// level multiplies them; returns their scale. That of a row with an infinity or NaN is NaN.
float CPU_FN(cpu_attention_round)(const float *x, int64_t n, int16_t *y);

// The same three for Q8_0. Rows of weights can be read up to a multiple of 16.
void CPU_FN(cpu_attention_block_scores)(const struct attention_lines *keys,
                                        const struct attention_words *queries, int n_rows,
                                        float *scores, int64_t score_stride);
void CPU_FN(cpu_attention_block_sums)(const struct attention_lines *values, const float *weights,
                                      int64_t weight_stride, int n_rows, float *out,
                                      int64_t out_stride);
void CPU_FN(cpu_attention_special_block_sums)(const struct attention_lines *values,
                                              const float *weights, float *out);

#endif
