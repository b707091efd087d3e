// SPDX-License-Identifier: MIT
// ssm_conv and ssm_scan.
#include <math.h>

#include "ops/recurrent/ssm.h"
#include "simd/simd.h"
#include "simd/strided.h"
#include "simd/transpose.h"
#include "simd/vmath.h"

// --- convolution ---------------------------------------------------------------------------------

enum {
    CHANNELS = 16, // a few at a time: they are neighbours in the rows of the result, one per token
    TOKENS = 64,
};

// Where a convolution of one sequence begins, at some channel.
struct convolution {
    const char *x, *filters;
    size_t x_token, x_channel, tap, filter; // distances in bytes
    int64_t taps;
    char *y; // at the first token
    size_t y_token;
};

static float *result_row(const struct convolution *c, int64_t t) {
    return (float *)(void *)(c->y + (size_t)t * c->y_token);
}

// One element: the filter times as many tokens.
static float convolve(const struct convolution *c, int64_t channel, int64_t t) {
    const char *x = c->x + (size_t)channel * c->x_channel + (size_t)t * c->x_token;
    const char *filter = c->filters + (size_t)channel * c->filter;
    float sum = 0.0f;
    for (int64_t k = 0; k < c->taps; ++k)
        sum += cpu_f32_at(x + (size_t)k * c->x_token) * cpu_f32_at(filter + (size_t)k * c->tap);
    return sum;
}

// Few tokens of some channels. Filters of four taps, which most models have, are as long as a quad;
// their products are added in pairs, in a row of many tokens one after the other.
static void convolve_few(const struct convolution *c, int64_t channels, int64_t tokens) {
    const bool quads = c->taps == QUAD && c->x_token == sizeof(float) && c->tap == sizeof(float);
    for (int64_t t = 0; t < tokens; ++t) {
        float *y = result_row(c, t);
        int64_t i = 0;
        for (; quads && i + QUAD <= channels; i += QUAD) {
            quad products[QUAD];
            for (int64_t r = 0; r < QUAD; ++r) {
                const char *x = c->x + (size_t)(i + r) * c->x_channel + (size_t)t * c->x_token;
                const char *filter = c->filters + (size_t)(i + r) * c->filter;
                products[r] = quad_load((const float *)(const void *)x) *
                              quad_load((const float *)(const void *)filter);
            }
            quad_store(y + i, quad_sum_each(products[0], products[1], products[2], products[3]));
        }
        for (; i < channels; ++i)
            y[i] = convolve(c, i, t);
    }
}

// One channel of n tokens, which are adjacent: each tap times a vector of tokens.
static void convolve_row(const struct convolution *c, int64_t channel, int64_t t0, int64_t n,
                         float *y) {
    enum { VECTORS_AT_ONCE = 4 };
    const float *x = (const float *)(const void *)(c->x + (size_t)channel * c->x_channel) + t0;
    const char *filter = c->filters + (size_t)channel * c->filter;
    int64_t t = 0;
    for (; t + VECTORS_AT_ONCE * LANES <= n; t += VECTORS_AT_ONCE * LANES) {
        vf sums[VECTORS_AT_ONCE];
        for (int v = 0; v < VECTORS_AT_ONCE; ++v)
            sums[v] = (vf){0};
        for (int64_t k = 0; k < c->taps; ++k) {
            const float weight = cpu_f32_at(filter + (size_t)k * c->tap);
            for (int v = 0; v < VECTORS_AT_ONCE; ++v)
                sums[v] += vf_load(x + t + v * LANES + k) * weight;
        }
        for (int v = 0; v < VECTORS_AT_ONCE; ++v)
            vf_store(y + t + v * LANES, sums[v]);
    }
    for (; t < n; t += LANES) {
        vf sum = {0};
        for (int64_t k = 0; k < c->taps; ++k)
            sum += vf_load_most(x + t + k, n - t) * cpu_f32_at(filter + (size_t)k * c->tap);
        vf_store_most(y + t, sum, n - t);
    }
}

// Many tokens of some channels, whose rows are transposed on the way to the result.
static void convolve_many(const struct convolution *c, int64_t channels, int64_t tokens) {
    float rows[CHANNELS][TOKENS];
    for (int64_t t0 = 0; t0 < tokens; t0 += TOKENS) {
        const int64_t n = MIN(tokens - t0, TOKENS);
        for (int64_t i = 0; i < channels; ++i)
            convolve_row(c, i, t0, n, rows[i]);
        int64_t t = 0;
        for (; t + QUAD <= n && channels == CHANNELS; t += QUAD) {
            for (int64_t i = 0; i < CHANNELS; i += QUAD) {
                quad turned[QUAD];
                transpose_quads(&rows[i][t], TOKENS, turned);
                for (int64_t r = 0; r < QUAD; ++r)
                    quad_store(result_row(c, t0 + t + r) + i, turned[r]);
            }
        }
        for (; t < n; ++t) {
            for (int64_t i = 0; i < channels; ++i)
                result_row(c, t0 + t)[i] = rows[i][t];
        }
    }
}

// Threads share blocks of channels of all sequences.
enum ggml_status CPU_FN(cpu_ssm_conv)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *x = dst->src[0], *filter = dst->src[1];
    const int64_t blocks = (dst->ne[0] + CHANNELS - 1) / CHANNELS, tokens = dst->ne[1];
    int64_t begin, end;
    cpu_task_range(task, blocks * dst->ne[2], &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first = unit % blocks * CHANNELS, sequence = unit / blocks;
        const int64_t channels = MIN(dst->ne[0] - first, CHANNELS);
        const struct convolution c = {
            .x = (const char *)x->data + (size_t)sequence * x->nb[2] + (size_t)first * x->nb[1],
            .x_token = x->nb[0],
            .x_channel = x->nb[1],
            .filters = (const char *)filter->data + (size_t)first * filter->nb[1],
            .tap = filter->nb[0],
            .filter = filter->nb[1],
            .taps = filter->ne[0],
            .y = ggml_row_data(dst, (struct ggml_row){0, sequence, 0}) +
                 (size_t)first * sizeof(float),
            .y_token = dst->nb[1],
        };
        if (tokens >= LANES && c.x_token == sizeof(float))
            convolve_many(&c, channels, tokens);
        else
            convolve_few(&c, channels, tokens);
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

// Part of a row of the state of a head, n elements.
struct scan_part {
    const float *b, *c;
    const float *decays; // one per element, or NULL: `decay` is for all
    float decay;
    int64_t n;
};

// Elements [i, i + n) of advance(), at most LANES.
CPU_INLINE void advance_vector(const struct scan_part *part, float *state, int64_t stride,
                               const float *inputs, int64_t i, int64_t n, vf *sums,
                               const int rows) {
    const vf b = vf_load_most(part->b + i, n), c = vf_load_most(part->c + i, n);
    const vf decay = part->decays ? vf_load_most(part->decays + i, n) : vf_set(part->decay);
    for (int r = 0; r < rows; ++r) {
        float *at = state + r * stride + i;
        const vf next = vf_load_most(at, n) * decay + b * inputs[r];
        vf_store_most(at, next, n);
        sums[r] += next * c;
    }
}

// state = state * decay + b * input of rows that lie `stride` apart; y += <state, c>. `rows` is a
// constant where this is inlined: 1 or QUAD, which share the operands and are independent of each
// other.
CPU_INLINE void advance(const struct scan_part *part, float *state, int64_t stride,
                        const float *inputs, float *y, const int rows) {
    vf sums[QUAD] = {{0}};
    float totals[QUAD];
    int64_t i = 0;
    for (; i + LANES <= part->n; i += LANES)
        advance_vector(part, state, stride, inputs, i, LANES, sums, rows);
    if (i < part->n) advance_vector(part, state, stride, inputs, i, part->n - i, sums, rows);
    vf_sum_rows(sums, totals, rows);
    for (int r = 0; r < rows; ++r)
        y[r] += totals[r];
}

// One row, where each element of the state has a rate of its own.
static void advance_each(const struct scan_part *all, float delta, const float *rates, float *state,
                         float input, float *y) {
    float decays[CPU_CHUNK];
    for (int64_t i = 0; i < all->n; i += CPU_CHUNK) {
        const struct scan_part part = {
            .b = all->b + i, .c = all->c + i, .decays = decays, .n = MIN(all->n - i, CPU_CHUNK)};
        for (int64_t k = 0; k < part.n; ++k)
            decays[k] = cpu_expf(delta * rates[i + k]);
        advance(&part, state + i, 0, &input, y, 1);
    }
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
    const float *x = row_of(scan->x, head, t, seq), *rates = row_of(scan->a, head, 0, 0);
    const struct scan_part part = {.b = row_of(scan->b, group, t, seq),
                                   .c = row_of(scan->c, group, t, seq),
                                   .decay = s->shared_rate ? expf(delta * rates[0]) : 0.0f,
                                   .n = s->n};
    float *y = scan->y + ((seq * s->tokens + t) * s->heads + head) * s->rows;
    float *state = scan->states + ((seq * s->heads + head) * s->rows + p0) * s->n;
    for (int64_t p = p0; p < p1;) {
        const int rows = s->shared_rate && p1 - p >= QUAD ? QUAD : 1;
        float inputs[QUAD];
        for (int r = 0; r < rows; ++r) {
            inputs[r] = x[p + r] * delta;
            y[p + r] = 0.0f;
        }
        if (!s->shared_rate)
            advance_each(&part, delta, rates, state, inputs[0], y + p);
        else if (rows == QUAD)
            advance(&part, state, s->n, inputs, y + p, QUAD);
        else
            advance(&part, state, s->n, inputs, y + p, 1);
        p += rows;
        state += rows * s->n;
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
