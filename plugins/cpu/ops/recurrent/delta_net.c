// SPDX-License-Identifier: MIT
// gated_delta_net. The state of a head is a matrix whose rows, one per element of v, do not depend
// on each other: threads share the rows.
#include <math.h>

#include "ggml-shape.h"
#include "simd/simd.h"
#include "simd/vmath.h"

struct delta_net {
    const struct ggml_tensor *q, *k, *v, *gate, *beta;
    float *out, *states;
    float *decays; // this thread's: one per key element
    int64_t n, heads, tokens, sequences, snapshots;
    float scale;
};

// The row as floats; its elements are adjacent.
static const float *row_of(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    return (const float *)(const void *)ggml_row_data(t, (struct ggml_row){i1, i2, i3});
}

// row *= decays; returns <row, k>.
static float decay_row(float *row, const float *decays, const float *k, int64_t n) {
    vf sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vf x = vf_load(row + i) * vf_load(decays + i);
        vf_store(row + i, x);
        sum += x * vf_load(k + i);
    }
    const vf x = vf_load_part(row + i, n - i) * vf_load_part(decays + i, n - i);
    vf_store_part(row + i, x, n - i);
    return vf_sum(sum + x * vf_load_part(k + i, n - i));
}

// row += delta * k; returns <row, q>.
static float update_row(float *row, float delta, const float *k, const float *q, int64_t n) {
    vf sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vf x = vf_load(row + i) + vf_load(k + i) * delta;
        vf_store(row + i, x);
        sum += x * vf_load(q + i);
    }
    const vf x = vf_load_part(row + i, n - i) + vf_load_part(k + i, n - i) * delta;
    vf_store_part(row + i, x, n - i);
    return vf_sum(sum + x * vf_load_part(q + i, n - i));
}

// e^gate per element, or one for all.
static void load_decays(const struct delta_net *d, const float *gate) {
    const bool shared = d->gate->ne[0] == 1;
    if (shared) {
        const float decay = cpu_expf(gate[0]);
        for (int64_t i = 0; i < d->n; ++i)
            d->decays[i] = decay;
        return;
    }
    for (int64_t i = 0; i < d->n; ++i)
        d->decays[i] = cpu_expf(gate[i]);
}

// One token of rows [j0, j1) of a head's state: the delta rule. What the decayed state recalls for
// the key is subtracted from the value, and the difference is added along the key.
// One token of rows [j0, j1) of a head's state.
static void step(const struct delta_net *d, int64_t seq, int64_t head, int64_t t, int64_t j0,
                 int64_t j1, float *state) {
    // Several heads and sequences of v may share one of q and k.
    const float *q = row_of(d->q, head % d->q->ne[1], t, seq / (d->sequences / d->q->ne[3]));
    const float *k = row_of(d->k, head % d->k->ne[1], t, seq / (d->sequences / d->k->ne[3]));
    const float *v = row_of(d->v, head, t, seq);
    const float beta = *row_of(d->beta, head, t, seq);
    float *out = d->out + ((seq * d->tokens + t) * d->heads + head) * d->n;
    load_decays(d, row_of(d->gate, head, t, seq));
    for (int64_t j = j0; j < j1; ++j, state += d->n) {
        const float delta = (v[j] - decay_row(state, d->decays, k, d->n)) * beta;
        out[j] = update_row(state, delta, k, q, d->n) * d->scale;
    }
}

// All tokens. The newest state is computed in place; snapshots of older ones are copied from it at
// their time.
static void compute_rows(const struct delta_net *d, const float *initial, int64_t unit, int64_t j0,
                         int64_t j1) {
    const int64_t offset = (unit * d->n + j0) * d->n;
    const size_t bytes = (size_t)((j1 - j0) * d->n) * sizeof(float);
    float *state = d->states + offset;
    memcpy(state, initial + offset, bytes);
    for (int64_t t = 0; t < d->tokens; ++t) {
        step(d, unit / d->heads, unit % d->heads, t, j0, j1, state);
        const int64_t slot = d->tokens - 1 - t;
        if (slot > 0 && slot < d->snapshots)
            memcpy(state + slot * d->n * d->n * d->heads * d->sequences, state, bytes);
    }
}

// A thread takes rows of the state through all tokens: no barrier is needed.
enum ggml_status CPU_FN(cpu_gated_delta_net)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
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
    d.states = d.out + ggml_nelements(d.v);
    d.decays = (float *)task->work + (size_t)task->ith * (size_t)d.n;
    d.scale = 1.0f / sqrtf((float)d.n);
    int64_t begin, end;
    cpu_task_range(task, d.tokens > 0 ? d.n * d.heads * d.sequences : 0, &begin, &end);
    // A range may span several heads.
    while (begin < end) {
        const int64_t j0 = begin % d.n;
        const int64_t j1 = MIN(d.n, j0 + end - begin);
        compute_rows(&d, dst->src[5]->data, begin / d.n, j0, j1);
        begin += j1 - j0;
    }
    return GGML_STATUS_SUCCESS;
}
