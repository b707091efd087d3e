// SPDX-License-Identifier: MIT
// rwkv_wkv6, gated_linear_attn and rwkv_wkv7: a matrix of state per head, updated token by token.
// Threads share the heads of all sequences.
#include "ops/recurrent/linear_attention.h"
#include "ggml-shape.h"
#include "simd/simd.h"

// A head's rows of the operands at one token.
struct token {
    const float *src[6];
    float scale;
};

// Updates the state, n x n, and sets the n outputs.
typedef void (*step_fn)(float *restrict state, float *restrict out, const struct token *token,
                        int64_t n);

// One token of RWKV-6 (Peng et al., 2024): reads the state with a bonus for this token, then
// decays it and adds k v^T. O(n^2).
static void wkv6_step(float *restrict state, float *restrict out, const struct token *token,
                      int64_t n) {
    const float *k = token->src[0], *v = token->src[1], *r = token->src[2];
    const float *bonus = token->src[3], *decay = token->src[4];
    memset(out, 0, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; ++i, state += n) {
        CPU_INDEPENDENT
        for (int64_t j = 0; j < n; ++j) {
            const float kv = k[i] * v[j];
            out[j] += r[i] * (bonus[i] * kv + state[j]);
            state[j] = state[j] * decay[i] + kv;
        }
    }
}

// One token of gated linear attention (Yang et al., 2023). O(n^2).
static void gated_step(float *restrict state, float *restrict out, const struct token *token,
                       int64_t n) {
    const float *k = token->src[0], *v = token->src[1], *q = token->src[2], *gate = token->src[3];
    memset(out, 0, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; ++i, state += n) {
        const float weight = q[i] * token->scale;
        CPU_INDEPENDENT
        for (int64_t j = 0; j < n; ++j) {
            state[j] = state[j] * gate[i] + k[i] * v[j];
            out[j] += state[j] * weight;
        }
    }
}

// Inner product; the rest of a vector is loaded with zeros.
static float dot(const float *x, const float *y, int64_t n) {
    vf sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        sum += vf_load(x + i) * vf_load(y + i);
    return vf_sum(sum + vf_load_part(x + i, n - i) * vf_load_part(y + i, n - i));
}

// One token of RWKV-7: the state is multiplied by diag(w) + a b^T, a generalised delta rule.
// O(n^2).
static void wkv7_step(float *restrict state, float *restrict out, const struct token *token,
                      int64_t n) {
    const float *r = token->src[0], *w = token->src[1], *k = token->src[2];
    const float *v = token->src[3], *a = token->src[4], *b = token->src[5];
    for (int64_t i = 0; i < n; ++i, state += n) {
        const float sa = dot(a, state, n);
        CPU_INDEPENDENT
        for (int64_t j = 0; j < n; ++j)
            state[j] = state[j] * w[j] + v[i] * k[j] + sa * b[j];
        out[i] = dot(state, r, n);
    }
}

// Runs a step function over all tokens, for this thread's heads. Source `bonus` has one row per
// head for all tokens; -1: none.
static enum ggml_status attend(const struct cpu_task *task, step_fn step, int n_src, int bonus) {
    const struct ggml_tensor *dst = task->dst;
    const struct linear_attention s = linear_attention_of(dst, n_src);
    struct token token = {.scale = ggml_get_op_params_f32(dst, 0)};
    const int64_t square = s.n * s.n;
    int64_t begin, end;
    cpu_task_range(task, s.heads * s.sequences, &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t head = unit % s.heads;
        const int64_t first = unit / s.heads * s.tokens;
        // States follow the outputs in the result; the initial one is the last source.
        float *state = (float *)dst->data + s.sequences * s.tokens * s.heads * s.n + unit * square;
        memcpy(state, (const float *)dst->src[n_src]->data + unit * square,
               (size_t)square * sizeof(float));
        for (int64_t t = first; t < first + s.tokens; ++t) {
            const int64_t row = (t * s.heads + head) * s.n;
            for (int i = 0; i < n_src; ++i)
                token.src[i] = (const float *)dst->src[i]->data + (i == bonus ? head * s.n : row);
            step(state, (float *)dst->data + row, &token, s.n);
        }
    }
    return GGML_STATUS_SUCCESS;
}

enum ggml_status CPU_FN(cpu_rwkv_wkv6)(const struct cpu_task *task) {
    return attend(task, wkv6_step, 5, 3);
}

enum ggml_status CPU_FN(cpu_gated_linear_attn)(const struct cpu_task *task) {
    return attend(task, gated_step, 4, -1);
}

enum ggml_status CPU_FN(cpu_rwkv_wkv7)(const struct cpu_task *task) {
    return attend(task, wkv7_step, 6, -1);
}
