// SPDX-License-Identifier: MIT
// rwkv_wkv6, gated_linear_attn and rwkv_wkv7: a matrix of state per head, updated token by token.
// Threads share the heads of all sequences.
#include "ops/recurrent/linear_attention.h"
#include "ggml-shape.h"
#include "ops/recurrent/recurrence.h"
#include "simd/simd.h"

// A head's rows of the operands at one token.
struct token {
    const float *src[6];
    float scale;
};

// Computes the state after a token, n x n, from the one before, which may be in the same place, and
// sets the n outputs.
typedef void (*step_fn)(const float *from, float *to, float *restrict out,
                        const struct token *token, int64_t n);

// One token of RWKV-6 (Peng et al., 2024): reads the state with a bonus for this token, then
// decays it and adds k v^T. O(n^2).
static void wkv6_step(const float *from, float *to, float *restrict out, const struct token *token,
                      int64_t n) {
    const float *k = token->src[0], *v = token->src[1], *r = token->src[2];
    const float *bonus = token->src[3], *decay = token->src[4];
    memset(out, 0, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; ++i, from += n, to += n) {
        CPU_INDEPENDENT
        for (int64_t j = 0; j < n; ++j) {
            const float kv = k[i] * v[j];
            out[j] += r[i] * (bonus[i] * kv + from[j]);
            to[j] = from[j] * decay[i] + kv;
        }
    }
}

// One token of gated linear attention (Yang et al., 2023). O(n^2).
static void gated_step(const float *from, float *to, float *restrict out, const struct token *token,
                       int64_t n) {
    const float *k = token->src[0], *v = token->src[1], *q = token->src[2], *gate = token->src[3];
    memset(out, 0, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; ++i, from += n, to += n) {
        const float weight = q[i] * token->scale;
        CPU_INDEPENDENT
        for (int64_t j = 0; j < n; ++j) {
            to[j] = from[j] * gate[i] + k[i] * v[j];
            out[j] += to[j] * weight;
        }
    }
}

// Rows of the state from the first one of `from` and `to` on, that one token changes.
struct wkv7_rows {
    const float *from;
    float *to;
    const float *v; // one per row
    int64_t n;
};

// Elements [j, j + n) of each row, at most LANES, times those of a.
CPU_INLINE void wkv7_along(const struct wkv7_rows *rows, const float *a, int64_t j, int64_t n,
                           vf *sums, const int n_rows) {
    const vf x = vf_load_most(a + j, n);
    for (int i = 0; i < n_rows; ++i)
        sums[i] += x * vf_load_most(rows->from + i * rows->n + j, n);
}

// The same elements of the new state, and their products with r.
CPU_INLINE void wkv7_update(const struct wkv7_rows *rows, const struct token *token,
                            const float *along, int64_t j, int64_t n, vf *sums, const int n_rows) {
    const vf r = vf_load_most(token->src[0] + j, n), w = vf_load_most(token->src[1] + j, n);
    const vf k = vf_load_most(token->src[2] + j, n), b = vf_load_most(token->src[5] + j, n);
    for (int i = 0; i < n_rows; ++i) {
        const int64_t at = i * rows->n + j;
        const vf state = vf_load_most(rows->from + at, n) * w + k * rows->v[i] + b * along[i];
        vf_store_most(rows->to + at, state, n);
        sums[i] += state * r;
    }
}

// One token of RWKV-7: the state is multiplied by diag(w) + a b^T, a generalised delta rule. O(n)
// for each row. `n_rows` is a constant where this is inlined: 1 or QUAD.
CPU_INLINE void wkv7_advance(const struct wkv7_rows *rows, float *out, const struct token *token,
                             const int n_rows) {
    const int64_t n = rows->n, whole = n - n % LANES;
    vf sums[QUAD] = {{0}};
    float along[QUAD];
    for (int64_t j = 0; j < whole; j += LANES)
        wkv7_along(rows, token->src[4], j, LANES, sums, n_rows);
    if (whole < n) wkv7_along(rows, token->src[4], whole, n - whole, sums, n_rows);
    vf_sum_rows(sums, along, n_rows);
    for (int i = 0; i < n_rows; ++i)
        sums[i] = (vf){0};
    for (int64_t j = 0; j < whole; j += LANES)
        wkv7_update(rows, token, along, j, LANES, sums, n_rows);
    if (whole < n) wkv7_update(rows, token, along, whole, n - whole, sums, n_rows);
    vf_sum_rows(sums, out, n_rows);
}

// Rows are taken four at a time: they share the operands, and are independent of each other.
// O(n^2).
static void wkv7_step(const float *from, float *to, float *restrict out, const struct token *token,
                      int64_t n) {
    for (int64_t i = 0; i < n;) {
        const struct wkv7_rows rows = {from + i * n, to + i * n, token->src[3] + i, n};
        const int n_rows = n - i >= QUAD ? QUAD : 1;
        if (n_rows == QUAD)
            wkv7_advance(&rows, out + i, token, QUAD);
        else
            wkv7_advance(&rows, out + i, token, 1);
        i += n_rows;
    }
}

// What is done at each token. Source `bonus` has one row per head for all tokens; -1: none.
struct attention {
    step_fn step;
    int bonus;
};

static struct attention attention_of(const struct ggml_tensor *node) {
    if (node->op == GGML_OP_RWKV_WKV6) return (struct attention){wkv6_step, 3};
    if (node->op == GGML_OP_RWKV_WKV7) return (struct attention){wkv7_step, -1};
    return (struct attention){gated_step, -1};
}

// Runs the step over all tokens, for this thread's heads.
static enum ggml_status attend(const struct cpu_task *task, const struct ggml_tensor *dst,
                               float *states) {
    const struct attention attention = attention_of(dst);
    struct recurrence r;
    if (!recurrence_of(dst, &r)) return GGML_STATUS_FAILED;
    const int n_src = r.state; // the initial states are the last source
    const struct linear_attention s = linear_attention_of(dst, n_src);
    struct token token = {.scale = ggml_get_op_params_f32(dst, 0)};
    const int64_t square = s.n * s.n;
    int64_t begin, end;
    cpu_task_range(task, s.heads * s.sequences, &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t head = unit % s.heads;
        const int64_t first = unit / s.heads * s.tokens;
        float *state = states + unit * square;
        const float *from = (const float *)dst->src[n_src]->data + unit * square;
        if (s.tokens == 0) memcpy(state, from, (size_t)square * sizeof(float));
        for (int64_t t = first; t < first + s.tokens; ++t) {
            const int64_t row = (t * s.heads + head) * s.n;
            for (int i = 0; i < n_src; ++i)
                token.src[i] =
                    (const float *)dst->src[i]->data + (i == attention.bonus ? head * s.n : row);
            attention.step(from, state, (float *)dst->data + row, &token, s.n);
            from = state;
        }
    }
    return GGML_STATUS_SUCCESS;
}

enum ggml_status CPU_FN(cpu_linear_attention)(const struct cpu_task *task) {
    return recurrence_store(task, attend);
}

enum ggml_status CPU_FN(cpu_kept_linear_attention)(const struct cpu_task *task) {
    return recurrence_keep(task, attend);
}
