// SPDX-License-Identifier: MIT
// gated_delta_net. The state of a head is a matrix whose rows, one per element of v, do not depend
// on each other: threads share blocks of them.
#include <math.h>

#include "ggml-shape.h"
#include "ops/recurrent/recurrence.h"
#include "ops/recurrent/row_block.h"
#include "simd/simd.h"
#include "simd/vmath.h"

struct delta_net {
    const struct ggml_tensor *q, *k, *v, *gate, *beta;
    float *out, *states;
    float *block; // this thread's, of rows
    // This thread's rows of BLOCK_TOKENS tokens: queries, keys, and where each element of a key has
    // a gate of its own e^gate and the keys times it, else NULL.
    float *queries, *keys, *decays, *decayed_keys;
    int64_t n, heads, tokens, sequences, snapshots;
    float scale;
};

// One token of a head; rows are padded.
struct delta_token {
    const float *q, *k, *v;
    const float *decays;     // one per element of a key, or NULL
    const float *recall_key; // k, times those
    float decay;             // where they are NULL
    float beta;
    float *out;
};

// The row as floats; its elements are adjacent.
static const float *row_of(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    return (const float *)(const void *)ggml_row_data(t, (struct ggml_row){i1, i2, i3});
}

// y[r] = <row, key>
static void recall(const float *block, const float *key, float *y, int64_t n) {
    vf sums[BLOCK_ROWS];
    for (int r = 0; r < BLOCK_ROWS; ++r)
        sums[r] = (vf){0};
    for (int64_t i = 0; i < n; i += LANES, block += BLOCK_ROWS * LANES) {
        const vf k = vf_load(key + i);
        for (int r = 0; r < BLOCK_ROWS; ++r)
            sums[r] += vf_load(block + r * LANES) * k;
    }
    vf_sum_eight(sums, y);
}

// ROWS_IN_REGISTERS rows decay, and get `deltas` along the key; sums[r] is their product with the
// query. `each`, a constant where this is inlined: there are decays for each element.
CPU_INLINE void update(float *block, const struct delta_token *token, const float *deltas, vf *out,
                       int64_t n, const bool each) {
    // In variables, as the compiler can't know that they don't change.
    const float *q = token->q, *k = token->k, *decays = token->decays;
    vf sums[ROWS_IN_REGISTERS], delta[ROWS_IN_REGISTERS], decay = vf_set(token->decay);
    for (int r = 0; r < ROWS_IN_REGISTERS; ++r) {
        sums[r] = (vf){0};
        delta[r] = vf_set(deltas[r]);
    }
    for (int64_t i = 0; i < n; i += LANES, block += BLOCK_ROWS * LANES) {
        const vf along = vf_load(k + i), read = vf_load(q + i);
        if (each) decay = vf_load(decays + i);
        for (int r = 0; r < ROWS_IN_REGISTERS; ++r) {
            const vf x = vf_load(block + r * LANES) * decay + along * delta[r];
            vf_store(block + r * LANES, x);
            sums[r] += x * read;
        }
    }
    for (int r = 0; r < ROWS_IN_REGISTERS; ++r)
        out[r] = sums[r];
}

// The delta rule for n_rows rows from j on: what the decayed state recalls for the key is
// subtracted from the value, and the difference is added along the key.
static void advance(const struct delta_net *d, const struct delta_token *token, int64_t j,
                    int64_t n_rows) {
    float deltas[BLOCK_ROWS] = {0}, recalled[BLOCK_ROWS], out[BLOCK_ROWS];
    vf sums[BLOCK_ROWS];
    recall(d->block, token->recall_key, recalled, d->n);
    const float decay = token->decays ? 1.0f : token->decay;
    for (int64_t r = 0; r < n_rows; ++r)
        deltas[r] = (token->v[j + r] - recalled[r] * decay) * token->beta;
    for (int r = 0; r < BLOCK_ROWS; r += ROWS_IN_REGISTERS) {
        if (token->decays)
            update(d->block + r * LANES, token, deltas + r, sums + r, d->n, true);
        else
            update(d->block + r * LANES, token, deltas + r, sums + r, d->n, false);
    }
    vf_sum_eight(sums, out);
    for (int64_t r = 0; r < n_rows; ++r)
        token->out[j + r] = out[r] * d->scale;
}

// Operands of a token; `i` is its place among those that are taken at once. Keys and queries are
// copied also since those of successive tokens often lie a multiple of 4 KiB apart, where they
// would share few lines of the first-level cache.
static struct delta_token token_of(const struct delta_net *d, int64_t seq, int64_t head, int64_t t,
                                   int64_t i) {
    // Several heads and sequences of v may share one of q and k.
    const float *q = row_of(d->q, head % d->q->ne[1], t, seq / (d->sequences / d->q->ne[3]));
    const float *k = row_of(d->k, head % d->k->ne[1], t, seq / (d->sequences / d->k->ne[3]));
    const float *gate = row_of(d->gate, head, t, seq);
    const int64_t at = i * padded_row(d->n);
    row_pad(d->queries + at, q, d->n);
    row_pad(d->keys + at, k, d->n);
    struct delta_token token = {
        .q = d->queries + at,
        .k = d->keys + at,
        .v = row_of(d->v, head, t, seq),
        .recall_key = d->keys + at,
        .beta = *row_of(d->beta, head, t, seq),
        .out = d->out + ((seq * d->tokens + t) * d->heads + head) * d->n,
    };
    if (d->decays == NULL) {
        token.decay = cpu_expf(gate[0]);
        return token;
    }
    float *decays = d->decays + at, *key = d->decayed_keys + at;
    for (int64_t e = 0; e < d->n; ++e)
        decays[e] = cpu_expf(gate[e]);
    memset(decays + d->n, 0, (size_t)(padded_row(d->n) - d->n) * sizeof(float));
    for (int64_t e = 0; e < d->n; e += LANES)
        vf_store(key + e, vf_load(decays + e) * vf_load(token.k + e));
    token.decays = decays;
    token.recall_key = key;
    return token;
}

// Rows [j0, j1) of a head's state through all tokens. The newest state stays where it is stored
// between blocks of tokens; snapshots of older ones are stored at their time.
static void compute_rows(const struct delta_net *d, const float *initial, int64_t unit, int64_t j0,
                         int64_t j1) {
    struct delta_token tokens[BLOCK_TOKENS];
    const int64_t snapshot = d->n * d->n * d->heads * d->sequences;
    for (int64_t t0 = 0; t0 < d->tokens; t0 += BLOCK_TOKENS) {
        const int64_t n_tokens = MIN(d->tokens - t0, BLOCK_TOKENS);
        for (int64_t i = 0; i < n_tokens; ++i)
            tokens[i] = token_of(d, unit / d->heads, unit % d->heads, t0 + i, i);
        for (int64_t j = j0; j < j1; j += BLOCK_ROWS) {
            const int64_t n_rows = MIN(j1 - j, BLOCK_ROWS), offset = (unit * d->n + j) * d->n;
            float *state = d->states + offset;
            block_load(d->block, t0 == 0 ? initial + offset : state, d->n, n_rows);
            for (int64_t i = 0; i < n_tokens; ++i) {
                advance(d, &tokens[i], j, n_rows);
                const int64_t slot = d->tokens - 1 - (t0 + i);
                if (slot > 0 && slot < d->snapshots)
                    block_store(d->block, state + slot * snapshot, d->n, n_rows);
            }
            block_store(d->block, state, d->n, n_rows);
        }
    }
}

// A thread takes rows of the state through all tokens: no barrier is needed.
static enum ggml_status advance_states(const struct cpu_task *task, const struct ggml_tensor *dst,
                                       float *states) {
    struct delta_net d = {.q = dst->src[0],
                          .k = dst->src[1],
                          .v = dst->src[2],
                          .gate = dst->src[3],
                          .beta = dst->src[4],
                          .out = dst->data};
    d.n = d.v->ne[0];
    d.heads = d.v->ne[1];
    d.tokens = d.v->ne[2];
    d.sequences = d.v->ne[3];
    d.snapshots = ggml_get_op_params_i32(dst, 0);
    d.states = states;
    const int64_t operand = BLOCK_TOKENS * padded_row(d.n);
    d.block = (float *)task->work + task->ith * delta_net_work_floats(dst);
    d.queries = d.block + BLOCK_ROWS * padded_row(d.n);
    d.keys = d.queries + operand;
    if (d.gate->ne[0] != 1) {
        d.decays = d.keys + operand;
        d.decayed_keys = d.decays + operand;
    }
    d.scale = 1.0f / sqrtf((float)d.n);
    const int64_t blocks = (d.n + BLOCK_ROWS - 1) / BLOCK_ROWS;
    int64_t begin, end;
    cpu_task_range(task, d.tokens > 0 ? blocks * d.heads * d.sequences : 0, &begin, &end);
    // A range may span several heads.
    while (begin < end) {
        const int64_t first = begin % blocks, last = MIN(blocks, first + end - begin);
        compute_rows(&d, dst->src[5]->data, begin / blocks, first * BLOCK_ROWS,
                     MIN(d.n, last * BLOCK_ROWS));
        begin += last - first;
    }
    return GGML_STATUS_SUCCESS;
}

enum ggml_status CPU_FN(cpu_gated_delta_net)(const struct cpu_task *task) {
    return recurrence_store(task, advance_states);
}

enum ggml_status CPU_FN(cpu_kept_delta_net)(const struct cpu_task *task) {
    return recurrence_keep(task, advance_states);
}
