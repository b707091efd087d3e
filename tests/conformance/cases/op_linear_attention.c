// SPDX-License-Identifier: MIT
// RWKV (versions 6 and 7), gated linear attention and the gated delta rule: matrices as state.
#include <stdlib.h>

#include "case.h"
#include "oracle/oracle_sum.h"

// Everything is computed twice: as it is, and with the absolute value of every operand and no
// differences, which gives what rounding errors are relative to.
struct reading {
    const struct ggml_tensor *node;
    bool sizes;
};

static double read_at(const struct reading *r, int source, int64_t i0, int64_t i1, int64_t i2,
                      int64_t i3) {
    const double value = oracle_value(r->node->src[source], i0, i1, i2, i3);
    return r->sizes ? fabs(value) : value;
}

static double read_flat(const struct reading *r, int source, int64_t i) {
    int64_t i0, i1, i2, i3;
    ggml_unravel_index(r->node->src[source], i, &i0, &i1, &i2, &i3);
    return read_at(r, source, i0, i1, i2, i3);
}

// --- one head of rwkv and gated linear attention -------------------------------------------------

// A step of one head: the state of size x size elements, and the output of the token.
typedef void (*step_fn)(const struct reading *r, int64_t head, int64_t token, double *state,
                        double *out);

static void step_wkv6(const struct reading *r, int64_t head, int64_t token, double *state,
                      double *out) {
    const int64_t size = r->node->src[0]->ne[0];
    for (int64_t j = 0; j < size; ++j) {
        out[j] = 0;
        for (int64_t i = 0; i < size; ++i) {
            const double kv = read_at(r, 0, i, head, token, 0) * read_at(r, 1, j, head, token, 0);
            const double bonus = read_flat(r, 3, head * size + i);
            out[j] += read_at(r, 2, i, head, token, 0) * (bonus * kv + state[i * size + j]);
            state[i * size + j] = state[i * size + j] * read_at(r, 4, i, head, token, 0) + kv;
        }
    }
}

static void step_gated(const struct reading *r, int64_t head, int64_t token, double *state,
                       double *out) {
    const int64_t size = r->node->src[0]->ne[0];
    const double scale = (double)conformance_param_f32(r->node, 0);
    for (int64_t j = 0; j < size; ++j) {
        out[j] = 0;
        for (int64_t i = 0; i < size; ++i) {
            double *s = &state[i * size + j];
            *s = *s * read_at(r, 3, i, head, token, 0) +
                 read_at(r, 0, i, head, token, 0) * read_at(r, 1, j, head, token, 0);
            out[j] += *s * read_at(r, 2, i, head, token, 0) * (r->sizes ? fabs(scale) : scale);
        }
    }
}

static void step_wkv7(const struct reading *r, int64_t head, int64_t token, double *state,
                      double *out) {
    const int64_t size = r->node->src[0]->ne[0];
    for (int64_t i = 0; i < size; ++i) {
        double removed = 0;
        for (int64_t j = 0; j < size; ++j)
            removed += read_at(r, 4, j, head, token, 0) * state[i * size + j];
        out[i] = 0;
        for (int64_t j = 0; j < size; ++j) {
            double *s = &state[i * size + j];
            *s = *s * read_at(r, 1, j, head, token, 0) +
                 read_at(r, 3, i, head, token, 0) * read_at(r, 2, j, head, token, 0) +
                 removed * read_at(r, 5, j, head, token, 0);
            out[i] += *s * read_at(r, 0, j, head, token, 0);
        }
    }
}

// Outputs of all tokens, then the state of each sequence.
static void scan(const struct reading *r, int state_source, step_fn step, double *out) {
    const struct ggml_tensor *first = r->node->src[0];
    const int64_t size = first->ne[0], heads = first->ne[1], tokens = first->ne[2];
    const int64_t n_seqs = r->node->src[state_source]->ne[1];
    double *states = out + size * heads * tokens;
    for (int64_t block = 0; block < heads * n_seqs; ++block) {
        const int64_t head = block % heads, seq = block / heads;
        double *state = states + block * size * size;
        for (int64_t i = 0; i < size * size; ++i)
            state[i] = read_flat(r, state_source, block * size * size + i);
        for (int64_t t = 0; t < tokens / n_seqs; ++t) {
            const int64_t token = seq * (tokens / n_seqs) + t;
            step(r, head, token, state, out + (token * heads + head) * size);
        }
    }
}

#define SCAN_ORACLE(name, state_source)                                                            \
    static void oracle_##name(const struct ggml_tensor *node, double *out) {                       \
        scan(&(struct reading){node, false}, state_source, step_##name, out);                      \
    }                                                                                              \
    static void magnitude_##name(const struct ggml_tensor *node, double *out) {                    \
        scan(&(struct reading){node, true}, state_source, step_##name, out);                       \
    }
SCAN_ORACLE(wkv6, 5)
SCAN_ORACLE(gated, 4)
SCAN_ORACLE(wkv7, 6)

static const char why_scan[] = "a state rounds four times per token, an output sums S of its "
                               "elements: 4 T + 2 S + 4 units of the terms";

struct scan_shape {
    int64_t size, heads, tokens, seqs;
};

static const struct scan_shape scan_shapes[] =
    {
        {8, 3, 6, 2},   {1, 1, 1, 1},  {64, 2, 5, 1},    {32, 4, 12, 4},
        {7, 5, 3, 1},   {64, 1, 1, 1}, {13, 2, 7, 7},    {16, 2, 0, 1},
        {128, 1, 4, 2}, {64, 6, 8, 2}, {64, 1, 1100, 1}, // more steps than drivers that limit loops
                                                         // allow
};
enum { N_SCAN_SHAPES = sizeof(scan_shapes) / sizeof(scan_shapes[0]) };

static bool scan_case(struct conformance *c, const struct scan_shape *s, const char *form) {
    if (!conformance_case(c, "f32/%s/S=%d/H=%d/T=%d/seqs=%d", form, (int)s->size, (int)s->heads,
                          (int)s->tokens, (int)s->seqs)) {
        return false;
    }
    const double tokens = (double)(s->tokens / s->seqs);
    conformance_bound(c, oracle_units(4 * tokens + 2 * (double)s->size + 4));
    return true;
}

static struct ggml_tensor *sequence(struct conformance *c, const struct scan_shape *s, double low,
                                    double high) {
    return conformance_range(c, GGML_TYPE_F32, extents(s->size, s->heads, s->tokens, 1), PACKED,
                             low, high);
}

static struct ggml_tensor *scan_state(struct conformance *c, const struct scan_shape *s) {
    return conformance_input(c, GGML_TYPE_F32, extents(s->size * s->size * s->heads, s->seqs, 1, 1),
                             PACKED);
}

static void cases_wkv6(struct conformance *c) {
    for (int m = 0; m < 2 * N_SCAN_SHAPES; ++m) {
        const struct scan_shape *s = &scan_shapes[m / 2];
        const double decay = m % 2 ? 0.999 : 0.1;
        if (!scan_case(c, s, m % 2 ? "slow" : "fast")) continue;
        struct ggml_tensor *k = sequence(c, s, -1, 1), *v = sequence(c, s, -1, 1);
        struct ggml_tensor *r = sequence(c, s, -1, 1);
        struct ggml_tensor *tf =
            conformance_input(c, GGML_TYPE_F32, extents(s->size, s->heads, 1, 1), PACKED);
        struct ggml_tensor *td = sequence(c, s, decay, 1);
        conformance_check(c, ggml_rwkv_wkv6(c->ctx, k, v, r, tf, td, scan_state(c, s)));
    }
}

CONFORMANCE_OP(RWKV_WKV6, oracle_wkv6, cases_wkv6, 1, why_scan, .magnitude = magnitude_wkv6);

static void cases_gated(struct conformance *c) {
    for (int m = 0; m < 2 * N_SCAN_SHAPES; ++m) {
        const struct scan_shape *s = &scan_shapes[m / 2];
        if (!scan_case(c, s, m % 2 ? "scaled" : "plain")) continue;
        struct ggml_tensor *k = sequence(c, s, -1, 1), *v = sequence(c, s, -1, 1);
        struct ggml_tensor *q = sequence(c, s, -1, 1), *g = sequence(c, s, 0, 1);
        const float scale = m % 2 ? -0.125f : 1;
        conformance_check(c, ggml_gated_linear_attn(c->ctx, k, v, q, g, scan_state(c, s), scale));
    }
}

CONFORMANCE_OP(GATED_LINEAR_ATTN, oracle_gated, cases_gated, 1, why_scan,
               .magnitude = magnitude_gated);

static void cases_wkv7(struct conformance *c) {
    for (int m = 0; m < 2 * N_SCAN_SHAPES; ++m) {
        struct scan_shape shape = scan_shapes[m / 2];
        const struct scan_shape *s = &shape;
        // Two loops per token; after more tokens of slow decay a state's size says nothing any
        // more.
        if (shape.tokens > 520) shape.tokens = m % 2 ? 20 : 520;
        // As in the model, a and b are a unit vector and a share of its opposite.
        const double unit = 1 / sqrt((double)s->size);
        if (!scan_case(c, s, m % 2 ? "slow" : "fast")) continue;
        struct ggml_tensor *r = sequence(c, s, -1, 1), *w = sequence(c, s, m % 2 ? 0.9 : 0, 1);
        struct ggml_tensor *k = sequence(c, s, -1, 1), *v = sequence(c, s, -1, 1);
        struct ggml_tensor *a = sequence(c, s, -unit, unit), *b = sequence(c, s, -unit, unit);
        // The sum over the removed direction: S more roundings per token.
        conformance_bound(c, oracle_units((double)(s->tokens / s->seqs) * (double)(s->size + 6) +
                                          2 * (double)s->size + 4));
        conformance_check(c, ggml_rwkv_wkv7(c->ctx, r, w, k, v, a, b, scan_state(c, s)));
    }
}

static const char why_wkv7[] = "a state rounds S + 6 times per token, an output sums S of its "
                               "elements: (S + 6) T + 2 S + 4 units of the terms";
CONFORMANCE_OP(RWKV_WKV7, oracle_wkv7, cases_wkv7, 1, why_wkv7, .magnitude = magnitude_wkv7);

// --- gated delta rule ----------------------------------------------------------------------------

// One token of value head `head`: M[i][j] at state[j * size + i], i the key's index.
static void delta_step(const struct reading *r, int64_t head, int64_t token, int64_t seq,
                       double *state, double *out) {
    const struct ggml_tensor *q = r->node->src[0], *k = r->node->src[1];
    const int64_t size = r->node->src[2]->ne[0], seqs = r->node->src[2]->ne[3];
    const int64_t q_seq = seq / (seqs / q->ne[3]), k_seq = seq / (seqs / k->ne[3]);
    const int64_t q_head = head % q->ne[1], k_head = head % k->ne[1];
    const double beta = read_at(r, 4, 0, head, token, seq);
    for (int64_t j = 0; j < size; ++j) {
        double *m = state + j * size;
        double known = 0;
        for (int64_t i = 0; i < size; ++i) {
            const int64_t gate = r->node->src[3]->ne[0] == 1 ? 0 : i;
            m[i] *= exp(oracle_value(r->node->src[3], gate, head, token, seq));
            known += m[i] * read_at(r, 1, i, k_head, token, k_seq);
        }
        const double v = read_at(r, 2, j, head, token, seq);
        const double delta = (r->sizes ? v + known : v - known) * beta;
        out[j] = 0;
        for (int64_t i = 0; i < size; ++i) {
            m[i] += read_at(r, 1, i, k_head, token, k_seq) * delta;
            out[j] += m[i] * read_at(r, 0, i, q_head, token, q_seq) / sqrt((double)size);
        }
    }
}

// All tokens of a head; the states of the last K tokens go into their slots.
static void delta_scan(const struct reading *r, double *out) {
    const struct ggml_tensor *v = r->node->src[2];
    const int64_t size = v->ne[0], heads = v->ne[1], tokens = v->ne[2], seqs = v->ne[3];
    const int64_t n_slots = r->node->op_params[0], block = size * size;
    double *slots = out + ggml_nelements(v);
    double *state = malloc((size_t)(block + 1) * sizeof(double));
    for (int64_t i = 0; i < ggml_nelements(r->node) - ggml_nelements(v); ++i)
        slots[i] = r->sizes ? 0 : ORACLE_UNTOUCHED;
    for (int64_t n = 0; n < heads * seqs; ++n) {
        for (int64_t i = 0; i < block; ++i)
            state[i] = read_flat(r, 5, n * block + i);
        for (int64_t t = 0; t < tokens; ++t) {
            const int64_t slot = tokens - 1 - t;
            delta_step(r, n % heads, t, n / heads, state,
                       out + ((n / heads * tokens + t) * heads + n % heads) * size);
            if (slot < n_slots)
                memcpy(slots + (slot * heads * seqs + n) * block, state,
                       (size_t)block * sizeof(double));
        }
    }
    free(state);
}

static void oracle_delta(const struct ggml_tensor *node, double *out) {
    delta_scan(&(struct reading){node, false}, out);
}

static void magnitude_delta(const struct ggml_tensor *node, double *out) {
    delta_scan(&(struct reading){node, true}, out);
}

static const char why_delta[] =
    "a state rounds S + 8 times per token (a sum over S, the gate's exp of 4 units), an output "
    "sums S of its elements: (S + 8) T + 2 S + 6 units of the terms";

struct delta_shape {
    int64_t size, q_heads, k_heads, heads, tokens, q_seqs, k_seqs, seqs;
};

static const struct delta_shape delta_shapes[] = {
    {8, 2, 2, 4, 5, 2, 2, 2},   {1, 1, 1, 1, 1, 1, 1, 1},  {64, 2, 1, 2, 3, 1, 1, 1},
    {16, 1, 3, 6, 7, 1, 2, 2},  {32, 4, 4, 4, 1, 3, 3, 3}, {7, 5, 1, 5, 4, 1, 1, 3},
    {128, 1, 1, 2, 2, 1, 1, 1}, {64, 4, 2, 8, 4, 1, 1, 2}, {128, 1, 1, 1, 300, 1, 1, 1}, // as above
};
enum { N_DELTA_SHAPES = sizeof(delta_shapes) / sizeof(delta_shapes[0]) };

static void delta_case(struct conformance *c, const struct delta_shape *s, bool vector, int64_t K,
                       enum conformance_layout layout) {
    if (!conformance_case(c, "f32/%s/S=%d/H=%d,%d,%d/T=%d/B=%d,%d,%d/K=%d/%s",
                          vector ? "vector" : "scalar", (int)s->size, (int)s->q_heads,
                          (int)s->k_heads, (int)s->heads, (int)s->tokens, (int)s->q_seqs,
                          (int)s->k_seqs, (int)s->seqs, (int)K, conformance_layout_name(layout))) {
        return;
    }
    const double unit = 1 / sqrt((double)s->size);
    const enum ggml_type f32 = GGML_TYPE_F32;
    struct ggml_tensor *q =
        conformance_input(c, f32, extents(s->size, s->q_heads, s->tokens, s->q_seqs), layout);
    struct ggml_tensor *k = conformance_range(
        c, f32, extents(s->size, s->k_heads, s->tokens, s->k_seqs), layout, -unit, unit);
    struct ggml_tensor *v =
        conformance_input(c, f32, extents(s->size, s->heads, s->tokens, s->seqs), layout);
    struct ggml_tensor *g = conformance_range(
        c, f32, extents(vector ? s->size : 1, s->heads, s->tokens, s->seqs), PACKED, -2, 0);
    struct ggml_tensor *beta =
        conformance_range(c, f32, extents(1, s->heads, s->tokens, s->seqs), PACKED, 0, 1);
    struct ggml_tensor *state =
        conformance_input(c, f32, extents(s->size, s->size, s->heads, s->seqs), PACKED);
    conformance_bound(
        c, oracle_units((double)s->tokens * (double)(s->size + 8) + 2 * (double)s->size + 6));
    conformance_check(c, ggml_gated_delta_net(c->ctx, q, k, v, g, beta, state, K));
}

static void cases_delta(struct conformance *c) {
    static const int64_t snapshots[] = {1, 2, 4, 9};
    static const enum conformance_layout layouts[] = {PACKED, GAPS, PERMUTED, ROTATED};
    for (int s = 0; s < N_DELTA_SHAPES; ++s) {
        for (int k = 0; k < (delta_shapes[s].tokens < 100 ? 4 : 1); ++k) {
            delta_case(c, &delta_shapes[s], false, snapshots[k], layouts[k]);
            delta_case(c, &delta_shapes[s], true, snapshots[k], layouts[(k + 1) % 4]);
        }
    }
}

CONFORMANCE_OP(GATED_DELTA_NET, oracle_delta, cases_delta, 1, why_delta,
               .magnitude = magnitude_delta);
