// SPDX-License-Identifier: MIT
// ssm_conv and ssm_scan.
#include <math.h>

#include "ops/recurrent/recurrence.h"
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
    const struct ggml_tensor *x, *dt, *a, *b, *c, *ids;
    const float *initial; // states, of which there are n_initial
    int64_t n_initial;
    float *y, *states;
    struct ssm_size size;
};

// Rows of the state of a head before and after a token, which may be in the same place; they lie
// `stride` apart.
struct scan_state {
    const float *from;
    float *to;
    int64_t stride;
};

// Part of a row of the state of a head, n elements.
struct scan_part {
    const float *b, *c;
    const float *decays; // one per element, or NULL: `decay` is for all
    float decay;
    int64_t n;
};

// Elements [i, i + n) of advance(), at most LANES.
CPU_INLINE void advance_vector(const struct scan_part *part, const struct scan_state *state,
                               const float *inputs, int64_t i, int64_t n, vf *sums,
                               const int rows) {
    const vf b = vf_load_most(part->b + i, n), c = vf_load_most(part->c + i, n);
    const vf decay = part->decays ? vf_load_most(part->decays + i, n) : vf_set(part->decay);
    for (int r = 0; r < rows; ++r) {
        const int64_t at = r * state->stride + i;
        const vf next = vf_load_most(state->from + at, n) * decay + b * inputs[r];
        vf_store_most(state->to + at, next, n);
        sums[r] += next * c;
    }
}

// state = state * decay + b * input; y += <state, c>. `rows` is a constant where this is inlined: 1
// or QUAD, which share the operands and are independent of each other.
CPU_INLINE void advance(const struct scan_part *part, struct scan_state state, const float *inputs,
                        float *y, const int rows) {
    vf sums[QUAD] = {{0}};
    float totals[QUAD];
    int64_t i = 0;
    for (; i + LANES <= part->n; i += LANES)
        advance_vector(part, &state, inputs, i, LANES, sums, rows);
    if (i < part->n) advance_vector(part, &state, inputs, i, part->n - i, sums, rows);
    vf_sum_rows(sums, totals, rows);
    for (int r = 0; r < rows; ++r)
        y[r] += totals[r];
}

// Four rows. One place instead of two, as all tokens but the first have it, takes fewer registers.
static void advance_quad(const struct scan_part *part, struct scan_state state, const float *inputs,
                         float *y) {
    const struct scan_state in_place = {state.to, state.to, state.stride};
    if (state.from == state.to)
        advance(part, in_place, inputs, y, QUAD);
    else
        advance(part, state, inputs, y, QUAD);
}

// One row, where each element of the state has a rate of its own.
static void advance_each(const struct scan_part *all, float delta, const float *rates,
                         const struct scan_state *state, float input, float *y) {
    float decays[CPU_CHUNK];
    for (int64_t i = 0; i < all->n; i += CPU_CHUNK) {
        const struct scan_part part = {
            .b = all->b + i, .c = all->c + i, .decays = decays, .n = MIN(all->n - i, CPU_CHUNK)};
        for (int64_t k = 0; k < part.n; ++k)
            decays[k] = cpu_expf(delta * rates[i + k]);
        const struct scan_state at = {.from = state->from + i, .to = state->to + i};
        advance(&part, at, &input, y, 1);
    }
}

static const float *row_of(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    return (const float *)(const void *)ggml_row_data(t, (struct ggml_row){i1, i2, i3});
}

// One token of rows [p0, p1) of a head; `state` begins with the first of them.
static void scan_token(const struct scan *scan, struct scan_state state, int64_t seq, int64_t head,
                       int64_t t, int64_t p0, int64_t p1) {
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
    for (int64_t p = p0; p < p1;) {
        const int rows = s->shared_rate && p1 - p >= QUAD ? QUAD : 1;
        float inputs[QUAD];
        for (int r = 0; r < rows; ++r) {
            inputs[r] = x[p + r] * delta;
            y[p + r] = 0.0f;
        }
        if (!s->shared_rate)
            advance_each(&part, delta, rates, &state, inputs[0], y + p);
        else if (rows == QUAD)
            advance_quad(&part, state, inputs, y + p);
        else
            advance(&part, state, inputs, y + p, 1);
        p += rows;
        state.from += rows * s->n;
        state.to += rows * s->n;
    }
}

// All tokens of rows [p0, p1) of a head. The newest state is computed in place; snapshots of older
// ones are copied from it at their time.
static void scan_rows(const struct scan *scan, int64_t id, int64_t seq, int64_t head, int64_t p0,
                      int64_t p1) {
    const struct ssm_size *s = &scan->size;
    struct scan_state state = {
        .from = scan->initial + ((id * s->heads + head) * s->rows + p0) * s->n,
        .to = scan->states + ((seq * s->heads + head) * s->rows + p0) * s->n,
        .stride = s->n,
    };
    for (int64_t t = 0; t < s->tokens; ++t) {
        scan_token(scan, state, seq, head, t, p0, p1);
        state.from = state.to;
        const int64_t slot = s->tokens - 1 - t;
        if (slot > 0 && slot < s->snapshots)
            memcpy(state.to + slot * ssm_state_floats(s), state.to,
                   (size_t)((p1 - p0) * s->n) * sizeof(float));
    }
}

// Read once, as other threads of the application may write to it; negative if it names no state.
static int64_t sequence_id(const struct scan *scan, int64_t seq) {
    int32_t id;
    memcpy(&id, (const char *)scan->ids->data + (size_t)seq * scan->ids->nb[0], sizeof(id));
    CPU_READ_ONCE(id);
    return id < scan->n_initial ? id : -1;
}

// Whether a new state would be stored upon one that a later sequence begins with.
static bool overwrites_initial(const struct scan *scan, const float *states) {
    const int64_t floats = ssm_state_floats(&scan->size) / scan->size.sequences;
    if (floats == 0) return false;
    const int64_t first = ((intptr_t)states - (intptr_t)scan->initial) /
                          (floats * (int64_t)sizeof(float)); // sequence 0 is stored at
    bool overwrites = false;
    for (int64_t seq = 0; seq < scan->size.sequences; ++seq) {
        const int64_t by = sequence_id(scan, seq) - first;
        overwrites = overwrites || (by >= 0 && by < seq);
    }
    return overwrites;
}

// Rows [begin, end) of the states of all heads, of every sequence. FAILED if an id has changed.
static enum ggml_status scan_sequences(const struct scan *scan, int64_t begin, int64_t end) {
    const int64_t rows = scan->size.rows;
    for (int64_t seq = 0; seq < scan->size.sequences; ++seq) {
        const int64_t id = sequence_id(scan, seq);
        if (id < 0) return GGML_STATUS_FAILED;
        for (int64_t row = begin; row < end;) {
            const int64_t p0 = row % rows, p1 = MIN(rows, p0 + end - row);
            scan_rows(scan, id, seq, row / rows, p0, p1);
            row += p1 - p0;
        }
    }
    return GGML_STATUS_SUCCESS;
}

// Threads share rows of the states of all heads. FAILED for an id that names no state, before
// anything is computed.
static enum ggml_status scan_states(const struct cpu_task *task, const struct ggml_tensor *node,
                                    float *states) {
    struct ggml_tensor *const *src = node->src;
    struct scan scan = {.x = src[1],
                        .dt = src[2],
                        .a = src[3],
                        .b = src[4],
                        .c = src[5],
                        .ids = src[6],
                        .initial = src[0]->data,
                        .n_initial = src[0]->ne[3],
                        .y = node->data,
                        .states = states,
                        .size = ssm_size(node)};
    const struct ssm_size *s = &scan.size;
    // Every thread checks all ids, so that all of them return the same status.
    for (int64_t seq = 0; seq < s->sequences; ++seq)
        if (sequence_id(&scan, seq) < 0) return GGML_STATUS_FAILED;
    // States that may not be stored yet wait in the result.
    if (overwrites_initial(&scan, states)) scan.states = scan.y + ggml_nelements(scan.x);
    int64_t begin, end;
    cpu_task_range(task, s->tokens > 0 ? s->rows * s->heads : 0, &begin, &end);
    const enum ggml_status status = scan_sequences(&scan, begin, end);
    if (status != GGML_STATUS_SUCCESS || scan.states == states) return status;
    for (int64_t seq = 0; seq < s->sequences; ++seq) {
        const int64_t at = (seq * s->heads * s->rows + begin) * s->n;
        memcpy(states + at, scan.states + at, (size_t)((end - begin) * s->n) * sizeof(float));
    }
    return status;
}

enum ggml_status CPU_FN(cpu_ssm_scan)(const struct cpu_task *task) {
    return recurrence_store(task, scan_states);
}

enum ggml_status CPU_FN(cpu_kept_ssm_scan)(const struct cpu_task *task) {
    return recurrence_keep(task, scan_states);
}
