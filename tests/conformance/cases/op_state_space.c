// SPDX-License-Identifier: MIT
// State-space models, triangular systems and hyper-connections.
#include <stdlib.h>

#include "case.h"
#include "oracle/oracle_sum.h"

// --- ssm_conv ------------------------------------------------------------------------------------

static const char why_products[] = "each product and each sum of the terms rounds once";

static void ssm_conv_at(const struct ggml_tensor *node, const int64_t i[4],
                        struct oracle_sum *sum) {
    const struct ggml_tensor *sx = node->src[0], *kernel = node->src[1];
    for (int64_t k = 0; k < kernel->ne[0]; ++k) {
        oracle_add(sum,
                   oracle_value(sx, i[1] + k, i[0], i[2], 0) * oracle_value(kernel, k, i[0], 0, 0));
    }
}
ORACLE_SUM(ssm_conv)

static void cases_ssm_conv(struct conformance *c) {
    static const int forms[][4] = {
        // d_conv, d_inner, T, S
        {4, 64, 7, 2}, {1, 1, 1, 1}, {3, 33, 5, 3}, {4, 1, 128, 1}, {2, 257, 2, 1},  {4, 128, 1, 5},
        {9, 7, 13, 1}, {4, 0, 3, 1}, {4, 5, 3, 0},  {4, 70, 40, 2}, {4, 19, 300, 1},
    };
    for (int layout = 0; layout < 4; ++layout) {
        for (size_t s = 0; s < sizeof(forms) / sizeof(forms[0]); ++s) {
            const int *f = forms[s];
            if (!conformance_case(c, "f32/d_conv=%d/d_inner=%d/T=%d/S=%d/%s", f[0], f[1], f[2],
                                  f[3], conformance_layout_name((enum conformance_layout)layout))) {
                continue;
            }
            struct ggml_tensor *sx =
                conformance_input(c, GGML_TYPE_F32, extents(f[0] - 1 + f[2], f[1], f[3], 1),
                                  (enum conformance_layout)layout);
            struct ggml_tensor *kernel =
                conformance_input(c, GGML_TYPE_F32, extents(f[0], f[1], 1, 1), PACKED);
            conformance_bound(c, oracle_units(f[0] + 1));
            conformance_check(c, ggml_ssm_conv(c->ctx, sx, kernel));
        }
    }
}

CONFORMANCE_OP(SSM_CONV, oracle_ssm_conv, cases_ssm_conv, 1, why_products,
               .magnitude = magnitude_ssm_conv);

// --- ssm_scan ------------------------------------------------------------------------------------

static const char why_ssm_scan[] =
    "a state rounds 4 times per token and its decay, exp(dt A), is off by 8 + 3 |dt A| units; an "
    "output sums N of its elements: 40 T + N + 12 units of the terms";

static double softplus(double x) {
    return x > 20 ? x : log1p(exp(x));
}

// Values, or with `sizes` what their terms amount to.
struct ssm {
    const struct ggml_tensor *node;
    bool sizes;
};

static double ssm_value(const struct ssm *m, int source, int64_t i0, int64_t i1, int64_t i2,
                        int64_t i3) {
    const double value = oracle_value(m->node->src[source], i0, i1, i2, i3);
    return m->sizes ? fabs(value) : value;
}

// A token of head h and channel p of the head.
static double ssm_step(const struct ssm *m, int64_t p, int64_t h, int64_t t, int64_t seq,
                       double *state) {
    const struct ggml_tensor *x = m->node->src[1], *a = m->node->src[3], *b = m->node->src[4];
    const int64_t group = h / (x->ne[1] / b->ne[1]);
    const double dt = softplus(oracle_value(m->node->src[2], h, t, seq, 0));
    double out = 0;
    for (int64_t n = 0; n < b->ne[0]; ++n) {
        const double decay = exp(dt * oracle_value(a, a->ne[0] == 1 ? 0 : n, h, 0, 0));
        state[n] = state[n] * decay +
                   ssm_value(m, 4, n, group, t, seq) * ssm_value(m, 1, p, h, t, seq) * dt;
        out += state[n] * ssm_value(m, 5, n, group, t, seq);
    }
    return out;
}

static void ssm_scan(const struct ssm *m, double *out) {
    const struct ggml_tensor *s = m->node->src[0], *x = m->node->src[1];
    const int64_t size = s->ne[0], dims = x->ne[0], heads = x->ne[1];
    const int64_t tokens = x->ne[2], seqs = x->ne[3];
    double *slots = out + ggml_nelements(x);
    double *state = malloc((size_t)(size + 1) * sizeof(double));
    for (int64_t i = 0; i < ggml_nelements(m->node) - ggml_nelements(x); ++i)
        slots[i] = m->sizes ? 0 : ORACLE_UNTOUCHED;
    for (int64_t row = 0; row < dims * heads * seqs; ++row) {
        const int64_t p = row % dims, h = row / dims % heads, seq = row / dims / heads;
        const int64_t from = (int64_t)oracle_value(m->node->src[6], seq, 0, 0, 0);
        for (int64_t n = 0; n < size; ++n)
            state[n] = ssm_value(m, 0, n, p, h, from);
        for (int64_t t = 0; t < tokens; ++t) {
            const int64_t slot = tokens - 1 - t;
            out[p + dims * (h + heads * (t + tokens * seq))] = ssm_step(m, p, h, t, seq, state);
            if (slot < m->node->op_params[0])
                memcpy(slots + (slot * dims * heads * seqs + row) * size, state,
                       (size_t)size * sizeof(double));
        }
    }
    free(state);
}

static void oracle_ssm_scan(const struct ggml_tensor *node, double *out) {
    ssm_scan(&(struct ssm){node, false}, out);
}

static void magnitude_ssm_scan(const struct ggml_tensor *node, double *out) {
    ssm_scan(&(struct ssm){node, true}, out);
}

struct ssm_shape {
    int64_t size, dims, heads, groups, tokens, seqs, states;
};

static const struct ssm_shape ssm_shapes[] = {
    {16, 4, 6, 2, 5, 2, 3},    {1, 1, 1, 1, 1, 1, 1},
    {128, 64, 2, 1, 3, 1, 1},  {16, 1, 33, 1, 7, 1, 2},
    {7, 5, 4, 4, 2, 3, 3},     {64, 8, 8, 2, 1, 4, 4},
    {13, 3, 3, 1, 9, 2, 5},    {256, 16, 2, 2, 2, 1, 1},
    {128, 2, 3, 1, 600, 1, 1}, // more steps than drivers that limit loops allow
};
enum { N_SSM_SHAPES = sizeof(ssm_shapes) / sizeof(ssm_shapes[0]) };

// Packed in the first two dimensions, with a gap behind the planes of each sequence.
static struct ggml_tensor *planes_apart(struct conformance *c, struct conformance_extents e) {
    struct ggml_tensor *whole =
        ggml_new_tensor_4d(c->ctx, GGML_TYPE_F32, e.ne[0], e.ne[1], e.ne[2] + 2, e.ne[3]);
    struct ggml_tensor *part = ggml_view_4d(c->ctx, whole, e.ne[0], e.ne[1], e.ne[2], e.ne[3],
                                            whole->nb[1], whole->nb[2], whole->nb[3], whole->nb[2]);
    conformance_fill(c, part, (struct conformance_fill){FILL_UNIFORM, -1, 1, NULL, 0});
    return part;
}

static void ssm_scan_case(struct conformance *c, const struct ssm_shape *s, bool per_state,
                          int64_t K, bool apart) {
    if (!conformance_case(c, "f32/%s/N=%d/P=%d/H=%d/G=%d/T=%d/S=%d/K=%d/%s",
                          per_state ? "mamba1" : "mamba2", (int)s->size, (int)s->dims,
                          (int)s->heads, (int)s->groups, (int)s->tokens, (int)s->seqs, (int)K,
                          apart ? "apart" : "packed")) {
        return;
    }
    const enum ggml_type f32 = GGML_TYPE_F32;
    struct ggml_tensor *state =
        conformance_input(c, f32, extents(s->size, s->dims, s->heads, s->states), PACKED);
    const struct conformance_extents x_ne = extents(s->dims, s->heads, s->tokens, s->seqs);
    const struct conformance_extents b_ne = extents(s->size, s->groups, s->tokens, s->seqs);
    struct ggml_tensor *x = apart ? planes_apart(c, x_ne) : conformance_input(c, f32, x_ne, PACKED);
    struct ggml_tensor *dt = conformance_range(c, f32, extents(s->heads, s->tokens, s->seqs, 1),
                                               PACKED, -4, s->size == 13 ? 24 : 2);
    struct ggml_tensor *a = conformance_range(
        c, f32, extents(per_state ? s->size : 1, s->heads, 1, 1), PACKED, -2, -0.1);
    struct ggml_tensor *b = apart ? planes_apart(c, b_ne) : conformance_input(c, f32, b_ne, PACKED);
    struct ggml_tensor *C = apart ? planes_apart(c, b_ne) : conformance_input(c, f32, b_ne, PACKED);
    struct ggml_tensor *ids =
        conformance_filled(c, GGML_TYPE_I32, extents(s->seqs, 1, 1, 1), PACKED,
                           (struct conformance_fill){FILL_DISTINCT, 0, (double)s->states, NULL, 0});
    conformance_bound(c, oracle_units(40 * (double)s->tokens + (double)s->size + 12));
    conformance_check(c, ggml_ssm_scan(c->ctx, state, x, dt, a, b, C, ids, K));
}

static void cases_ssm_scan(struct conformance *c) {
    static const int64_t snapshots[] = {1, 2, 4, 9};
    for (int s = 0; s < N_SSM_SHAPES; ++s) {
        for (int k = 0; k < 4; ++k)
            ssm_scan_case(c, &ssm_shapes[s], false, snapshots[k], k % 2 == 1);
        ssm_scan_case(c, &ssm_shapes[s], true, 1, false);
        ssm_scan_case(c, &ssm_shapes[s], true, 1, true);
    }
}

CONFORMANCE_OP(SSM_SCAN, oracle_ssm_scan, cases_ssm_scan, 1, why_ssm_scan,
               .magnitude = magnitude_ssm_scan);

// --- solve_tri -----------------------------------------------------------------------------------

static const char why_solve[] =
    "backward stable: row r rounds r + 2 times, relative to the solution without signs";

// Forward substitution; with `sizes`, without differences.
static void solve(const struct ggml_tensor *node, bool sizes, double *out) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t n_columns = node->ne[0], n = node->ne[1];
    for (int64_t batch = 0; batch < node->ne[2] * node->ne[3]; ++batch) {
        const int64_t i2 = batch % node->ne[2], i3 = batch / node->ne[2];
        double *x = out + batch * n * n_columns;
        for (int64_t i = 0; i < n * n_columns; ++i) {
            const int64_t row = i / n_columns, column = i % n_columns;
            const double b = oracle_value(node->src[1], column, row, i2, i3);
            const double d = oracle_value(a, row, row, i2, i3);
            x[i] = sizes ? fabs(b) : b;
            for (int64_t t = 0; t < row; ++t) {
                const double term = oracle_value(a, t, row, i2, i3) * x[t * n_columns + column];
                x[i] += sizes ? fabs(term) : -term;
            }
            x[i] /= sizes ? fabs(d) : d;
        }
    }
}

static void oracle_solve_tri(const struct ggml_tensor *node, double *out) {
    solve(node, false, out);
}

static void magnitude_solve_tri(const struct ggml_tensor *node, double *out) {
    solve(node, true, out);
}

// A matrix with a dominant diagonal; what is above it must not matter.
static void fill_triangle(double *values, int64_t n) {
    for (int64_t row = 0; row < n; ++row) {
        for (int64_t t = 0; t < n; ++t) {
            const double off = sin((double)(7 * row + 13 * t) + 0.5) / (double)n;
            values[row * n + t] = t < row ? off : t > row ? 1e30 : 1 + 0.25 * (double)(row % 5);
        }
    }
}

static void cases_solve_tri(struct conformance *c) {
    static const int forms[][4] = {
        // n, k, b2, b3
        {8, 5, 2, 3},   {1, 1, 1, 1}, {64, 3, 1, 2},   {33, 64, 1, 1},
        {128, 1, 2, 1}, {7, 7, 4, 1}, {16, 129, 1, 1}, {2, 2, 1, 9},
        {0, 3, 1, 1},   {5, 0, 1, 1}, {257, 2, 1, 1},  {403, 3, 1, 1},
    };
    static double values[403 * 403];
    for (size_t s = 0; s < sizeof(forms) / sizeof(forms[0]); ++s) {
        const int *f = forms[s];
        const int64_t n = f[0];
        if (!conformance_case(c, "f32/n=%d/k=%d/%dx%d", f[0], f[1], f[2], f[3])) continue;
        fill_triangle(values, n);
        const struct conformance_fill fill = {FILL_CYCLE, 0, 0, values, n > 0 ? f[0] * f[0] : 1};
        struct ggml_tensor *a =
            conformance_filled(c, GGML_TYPE_F32, extents(n, n, f[2], f[3]), PACKED, fill);
        struct ggml_tensor *b =
            conformance_input(c, GGML_TYPE_F32, extents(f[1], n, f[2], f[3]), PACKED);
        conformance_bound(c, oracle_units((double)n + 2));
        conformance_check(c, ggml_solve_tri(c->ctx, a, b, true, true, false));
    }
}

CONFORMANCE_OP(SOLVE_TRI, oracle_solve_tri, cases_solve_tri, 1, why_solve,
               .magnitude = magnitude_solve_tri);

// --- hyper-connections ---------------------------------------------------------------------------

static const char why_comb[] =
    "a weight is e^v with |v| < 8: off by 16 + 8 units; each of 2 n_iter normalisations adds a "
    "sum of 4 and a quotient, 6 units";

// Divides by the sums over d (of each s) or over s (of each d), plus eps.
static void normalise(double v[4][4], bool over_d, double eps) {
    for (int a = 0; a < 4; ++a) {
        double sum = eps;
        for (int b = 0; b < 4; ++b)
            sum += over_d ? v[a][b] : v[b][a];
        for (int b = 0; b < 4; ++b)
            *(over_d ? &v[a][b] : &v[b][a]) /= sum;
    }
}

static void comb_of_token(const struct ggml_tensor *node, int64_t t, double v[4][4]) {
    const double scale = oracle_value(node->src[1], 2, 0, 0, 0);
    const double eps = (double)conformance_param_f32(node, 0);
    for (int s = 0; s < 4; ++s) {
        double sum = 0;
        for (int d = 0; d < 4; ++d) {
            v[s][d] = exp(oracle_value(node->src[0], 8 + d + 4 * s, t, 0, 0) * scale +
                          oracle_value(node->src[2], 8 + d + 4 * s, 0, 0, 0));
            sum += v[s][d];
        }
        for (int d = 0; d < 4; ++d)
            v[s][d] = v[s][d] / sum + eps;
    }
    normalise(v, false, eps);
    for (int i = 1; i < node->op_params[1]; ++i) {
        normalise(v, true, eps);
        normalise(v, false, eps);
    }
}

static void oracle_comb(const struct ggml_tensor *node, double *out) {
    for (int64_t t = 0; t < node->ne[2]; ++t) {
        double v[4][4];
        comb_of_token(node, t, v);
        memcpy(out + 16 * t, v, sizeof(v));
    }
}

static void cases_comb(struct conformance *c) {
    static const int iterations[] = {1, 2, 5, 20};
    static const int tokens[] = {1, 7, 33, 0};
    for (int m = 0; m < 4 * 4 * 4; ++m) {
        const int n_iter = iterations[m % 4], n_tokens = tokens[m / 4 % 4];
        const enum conformance_layout layout = m / 16 % 2 ? GAPS : PACKED;
        const float eps = m / 32 ? 1e-6f : 0.01f;
        if (!conformance_case(c, "f32/T=%d/n_iter=%d/eps=%g/%s", n_tokens, n_iter, (double)eps,
                              conformance_layout_name(layout))) {
            continue;
        }
        struct ggml_tensor *mixes =
            conformance_range(c, GGML_TYPE_F32, extents(24, n_tokens, 1, 1), layout, -3, 3);
        struct ggml_tensor *scale =
            conformance_range(c, GGML_TYPE_F32, extents(3, 1, 1, 1), PACKED, 0.5, 2);
        struct ggml_tensor *base =
            conformance_range(c, GGML_TYPE_F32, extents(24, 1, 1, 1), PACKED, -2, 2);
        conformance_bound(c, oracle_units(24 + 12 * n_iter));
        conformance_check(c, ggml_dsv4_hc_comb(c->ctx, mixes, scale, base, eps, n_iter));
    }
}

CONFORMANCE_OP(DSV4_HC_COMB, oracle_comb, cases_comb, 1, why_comb, PLAIN);

static void hc_pre_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *sum) {
    const bool gated = node->op_params[1] != 0;
    for (int64_t h = 0; h < node->src[0]->ne[1]; ++h) {
        const double w = gated ? (double)conformance_param_f32(node, 0) /
                                     (1 + exp(-oracle_value(node->src[1], i[0], h, i[1], 0)))
                               : oracle_value(node->src[1], h, i[1], 0, 0);
        oracle_add(sum, oracle_value(node->src[0], i[0], h, i[1], 0) * w);
    }
}
ORACLE_SUM(hc_pre)

static const int hc_forms[][3] = {
    // E, hc, T
    {64, 4, 5},  {1, 1, 1},  {33, 4, 7}, {257, 2, 3},
    {128, 4, 1}, {7, 5, 13}, {16, 4, 0}, {1031, 4, 2},
};
enum { N_HC_FORMS = sizeof(hc_forms) / sizeof(hc_forms[0]) };

// The gated form has a sigmoid per element, good to 4 units, and a scale.
static void hc_pre_case(struct conformance *c, const int *f, enum conformance_layout layout,
                        bool gated) {
    const enum ggml_type f32 = GGML_TYPE_F32;
    if (!conformance_case(c, "f32/%sE=%d/hc=%d/T=%d/%s", gated ? "gated/" : "", f[0], f[1], f[2],
                          conformance_layout_name(layout))) {
        return;
    }
    conformance_bound(c, oracle_units(f[1] + (gated ? 8 : 2)));
    const struct conformance_extents ne = extents(f[0], f[1], f[2], 1);
    struct ggml_tensor *x = conformance_input(c, f32, ne, layout);
    conformance_check(
        c, gated ? ggml_dsv4_hc_pre_gated(c->ctx, x, conformance_range(c, f32, ne, layout, -8, 8),
                                          1.7f)
                 : ggml_dsv4_hc_pre(c->ctx, x,
                                    conformance_input(c, f32, extents(f[1], f[2], 1, 1), layout)));
}

static void cases_hc_pre(struct conformance *c) {
    for (int s = 0; s < N_HC_FORMS; ++s) {
        for (int l = 0; l < N_LAYOUTS; ++l) {
            hc_pre_case(c, hc_forms[s], (enum conformance_layout)l, false);
            hc_pre_case(c, hc_forms[s], (enum conformance_layout)l, true);
        }
    }
}

CONFORMANCE_OP(DSV4_HC_PRE, oracle_hc_pre, cases_hc_pre, 1, why_products,
               .magnitude = magnitude_hc_pre);

// Without a matrix of weights each copy keeps to itself.
static void hc_post_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *sum) {
    const struct ggml_tensor *comb = node->src[3];
    oracle_add(sum, oracle_value(node->src[0], i[0], i[2], 0, 0) *
                        oracle_value(node->src[2], i[1], i[2], 0, 0));
    for (int64_t s = 0; s < node->ne[1]; ++s) {
        const double weight = comb != NULL ? oracle_value(comb, i[1], s, i[2], 0) : s == i[1];
        oracle_add(sum, oracle_value(node->src[1], i[0], s, i[2], 0) * weight);
    }
}
ORACLE_SUM(hc_post)

static void hc_post_case(struct conformance *c, const int *f, enum conformance_layout layout,
                         bool combined) {
    const enum ggml_type f32 = GGML_TYPE_F32;
    if (!conformance_case(c, "f32/%sE=%d/hc=%d/T=%d/%s", combined ? "" : "uncombined/", f[0], f[1],
                          f[2], conformance_layout_name(layout))) {
        return;
    }
    conformance_bound(c, oracle_units(combined ? f[1] + 2 : 3));
    struct ggml_tensor *x = conformance_input(c, f32, extents(f[0], f[2], 1, 1), layout);
    struct ggml_tensor *residual = conformance_input(c, f32, extents(f[0], f[1], f[2], 1), layout);
    struct ggml_tensor *post = conformance_input(c, f32, extents(f[1], f[2], 1, 1), layout);
    struct ggml_tensor *comb =
        combined ? conformance_input(c, f32, extents(f[1], f[1], f[2], 1), layout) : NULL;
    conformance_check(c, ggml_dsv4_hc_post(c->ctx, x, residual, post, comb));
}

static void cases_hc_post(struct conformance *c) {
    for (int s = 0; s < N_HC_FORMS; ++s) {
        for (int l = 0; l < N_LAYOUTS; ++l) {
            hc_post_case(c, hc_forms[s], (enum conformance_layout)l, true);
            hc_post_case(c, hc_forms[s], (enum conformance_layout)l, false);
        }
    }
}

CONFORMANCE_OP(DSV4_HC_POST, oracle_hc_post, cases_hc_post, 1, why_products,
               .magnitude = magnitude_hc_post);
