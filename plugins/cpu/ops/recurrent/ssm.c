// SPDX-License-Identifier: MIT
// ssm_conv and ssm_scan.
#include <math.h>

#include "ops/recurrent/ssm.h"
#include "simd/simd.h"
#include "simd/strided.h"
#include "simd/vmath.h"

// One element of ssm_conv: the filter times as many tokens.
static float convolve(const struct ggml_tensor *x, const struct ggml_tensor *filter,
                      const char *from, const char *weights) {
    float sum = 0.0f;
    for (int64_t k = 0; k < filter->ne[0]; ++k)
        sum += cpu_f32_at(from + (size_t)k * x->nb[0]) *
               cpu_f32_at(weights + (size_t)k * filter->nb[0]);
    return sum;
}

// A few channels at a time: they are neighbours in the rows of the result, one per token.
enum ggml_status CPU_FN(cpu_ssm_conv)(const struct cpu_task *task) {
    enum { CHANNELS = 16 };
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *x = dst->src[0];
    const struct ggml_tensor *filter = dst->src[1];
    const int64_t blocks = (dst->ne[0] + CHANNELS - 1) / CHANNELS;
    int64_t begin, end;
    cpu_task_range(task, blocks * dst->ne[2], &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first = unit % blocks * CHANNELS;
        const int64_t n = MIN(dst->ne[0] - first, CHANNELS);
        for (int64_t t = 0; t < dst->ne[1]; ++t) {
            const struct ggml_row at = {t, unit / blocks, 0};
            float *y = (float *)(void *)ggml_row_data(dst, at) + first;
            const char *from = (const char *)x->data + (size_t)at.i2 * x->nb[2] +
                               (size_t)first * x->nb[1] + (size_t)t * x->nb[0];
            const char *weights = (const char *)filter->data + (size_t)first * filter->nb[1];
            for (int64_t i = 0; i < n; ++i) {
                y[i] = convolve(x, filter, from + (size_t)i * x->nb[1],
                                weights + (size_t)i * filter->nb[1]);
            }
        }
    }
    return GGML_STATUS_SUCCESS;
}

// --- selective scan ------------------------------------------------------------------------------

// Operands of a scan: y = <h, c>, where h = exp(delta a) h + delta b x.
struct scan {
    const struct ggml_tensor *x, *dt, *a, *b, *c;
    const float *initial;
    float *y, *states;
    struct ssm_size size;
};

// state = state * decay + b * input; returns <state, c>. `decays`, one per element, replaces
// `decay`.
static float advance(float *state, float decay, const float *decays, const float *b, const float *c,
                     float input, int64_t n) {
    vf sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vf d = decays ? vf_load(decays + i) : vf_set(decay);
        const vf s = vf_load(state + i) * d + vf_load(b + i) * input;
        vf_store(state + i, s);
        sum += s * vf_load(c + i);
    }
    if (i < n) {
        const vf d = decays ? vf_load_part(decays + i, n - i) : vf_set(decay);
        const vf s = vf_load_part(state + i, n - i) * d + vf_load_part(b + i, n - i) * input;
        vf_store_part(state + i, s, n - i);
        sum += s * vf_load_part(c + i, n - i);
    }
    return vf_sum(sum);
}

// As advance(), where each element of the state has a rate of its own.
static float advance_each(float *state, float delta, const float *rates, const float *b,
                          const float *c, float input, int64_t n) {
    float decays[CPU_CHUNK];
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i += CPU_CHUNK) {
        const int64_t count = MIN(n - i, CPU_CHUNK);
        for (int64_t k = 0; k < count; ++k)
            decays[k] = cpu_expf(delta * rates[i + k]);
        sum += advance(state + i, 0.0f, decays, b + i, c + i, input, count);
    }
    return sum;
}

static const float *row_of(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    return (const float *)(const void *)ggml_row_data(t, (struct ggml_row){i1, i2, i3});
}

// One token of rows [p0, p1) of a head.
static void scan_token(const struct scan *scan, int64_t seq, int64_t head, int64_t t, int64_t p0,
                       int64_t p1) {
    const struct ssm_size *s = &scan->size;
    const int64_t group = head / (s->heads / s->groups);
    const struct ggml_row at = {t, seq, 0};
    const float delta =
        cpu_softplusf(cpu_f32_at(ggml_row_data(scan->dt, at) + (size_t)head * scan->dt->nb[0]));
    const float *x = row_of(scan->x, head, t, seq);
    const float *b = row_of(scan->b, group, t, seq);
    const float *c = row_of(scan->c, group, t, seq);
    const float *rates = row_of(scan->a, head, 0, 0);
    const float decay = s->shared_rate ? expf(delta * rates[0]) : 0.0f;
    float *y = scan->y + ((seq * s->tokens + t) * s->heads + head) * s->rows;
    float *state = scan->states + ((seq * s->heads + head) * s->rows + p0) * s->n;
    for (int64_t p = p0; p < p1; ++p, state += s->n) {
        const float input = x[p] * delta;
        y[p] = s->shared_rate ? advance(state, decay, NULL, b, c, input, s->n)
                              : advance_each(state, delta, rates, b, c, input, s->n);
    }
}

// All tokens of rows [p0, p1) of a head. The newest state is computed in place; snapshots of older
// ones are copied from it at their time.
static void scan_rows(const struct scan *scan, int64_t id, int64_t seq, int64_t head, int64_t p0,
                      int64_t p1) {
    const struct ssm_size *s = &scan->size;
    const size_t bytes = (size_t)((p1 - p0) * s->n) * sizeof(float);
    float *state = scan->states + ((seq * s->heads + head) * s->rows + p0) * s->n;
    memcpy(state, scan->initial + ((id * s->heads + head) * s->rows + p0) * s->n, bytes);
    for (int64_t t = 0; t < s->tokens; ++t) {
        scan_token(scan, seq, head, t, p0, p1);
        const int64_t slot = s->tokens - 1 - t;
        if (slot > 0 && slot < s->snapshots)
            memcpy(state + slot * ssm_state_floats(s), state, bytes);
    }
}

// Read once, as other threads of the application may write to it.
static int32_t sequence_id(const struct ggml_tensor *ids, int64_t seq) {
    int32_t id;
    memcpy(&id, (const char *)ids->data + (size_t)seq * ids->nb[0], sizeof(id));
    CPU_READ_ONCE(id);
    return id;
}

// Threads share rows of the states of all heads and sequences. FAILED for an id that names no
// state, before anything is computed.
enum ggml_status CPU_FN(cpu_ssm_scan)(const struct cpu_task *task) {
    struct ggml_tensor *const *src = task->dst->src;
    struct scan scan = {.x = src[1], .dt = src[2], .a = src[3], .b = src[4], .c = src[5]};
    scan.size = ssm_size(task->dst);
    const struct ssm_size *s = &scan.size;
    scan.initial = src[0]->data;
    scan.y = task->dst->data;
    scan.states = scan.y + ggml_nelements(scan.x);
    // Every thread checks all ids, so that all of them return the same status.
    for (int64_t seq = 0; seq < s->sequences; ++seq) {
        const int32_t id = sequence_id(src[6], seq);
        if (id < 0 || id >= src[0]->ne[3]) return GGML_STATUS_FAILED;
    }
    int64_t begin, end;
    cpu_task_range(task, s->tokens > 0 ? s->rows * s->heads * s->sequences : 0, &begin, &end);
    while (begin < end) {
        const int64_t p0 = begin % s->rows;
        const int64_t p1 = MIN(s->rows, p0 + end - begin);
        const int64_t seq = begin / s->rows / s->heads;
        const int32_t id = sequence_id(src[6], seq);
        if (id < 0 || id >= src[0]->ne[3]) return GGML_STATUS_FAILED; // it has changed
        scan_rows(&scan, id, seq, begin / s->rows % s->heads, p0, p1);
        begin += p1 - p0;
    }
    return GGML_STATUS_SUCCESS;
}
