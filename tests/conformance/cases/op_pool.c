// SPDX-License-Identifier: MIT
// Pooling and its gradient.
#include <float.h>
#include <stdio.h>

#include "case.h"
#include "oracle/oracle_sum.h"

static const char why_pool[] =
    "maxima are exact; a mean rounds one sum per element of the window, and a quotient";

enum { N_POOL_TYPES = 3 };
static const char *const pool_names[] = {"max", "avg"};

// What a window has gathered.
struct pool {
    double max;
    struct oracle_sum sum;
    int64_t n;
};

static void gather(struct pool *pool, double x) {
    pool->max = fmax(pool->max, x);
    oracle_add(&pool->sum, x);
    ++pool->n;
}

// --- pool_1d -------------------------------------------------------------------------------------

static void pool_1d_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *out) {
    const struct ggml_tensor *a = node->src[0];
    const int32_t *p = node->op_params;
    struct pool pool = {-(double)FLT_MAX, {0, 0}, 0};
    for (int64_t k = 0; k < p[1]; ++k) {
        const int64_t x = i[0] * p[2] + k - p[3];
        if (x >= 0 && x < a->ne[0]) gather(&pool, oracle_value(a, x, i[1], i[2], i[3]));
    }
    const double n = pool.n > 0 ? (double)pool.n : 1;
    out->value = p[0] == GGML_OP_POOL_MAX ? pool.max : pool.sum.value / n;
    out->size = pool.sum.size / n;
}
ORACLE_SUM(pool_1d)

static void cases_pool_1d(struct conformance *c) {
    static const int forms[][3] = {{1, 1, 0}, {2, 2, 0}, {3, 1, 1},
                                   {5, 3, 2}, {4, 7, 0}, {3, 2, 4}};
    static const struct conformance_extents shapes[] = {
        {{33, 5, 3, 2}}, {{7, 1, 1, 1}}, {{64, 3, 1, 1}}, {{257, 2, 1, 1}}, {{5, 0, 2, 1}}};
    for (int m = 0; m < 2 * N_POOL_TYPES * 6 * 5; ++m) {
        const enum ggml_op_pool op = (enum ggml_op_pool)(m % 2);
        const enum ggml_type type = conformance_floats[m / 2 % N_POOL_TYPES];
        const int *f = forms[m / 6 % 6];
        const struct conformance_extents ne = shapes[m / 36];
        for (int layout = 0; layout < N_LAYOUTS; layout += 1 + m % 2) {
            if (!conformance_case(c, "%s/%s/k=%d/s=%d/p=%d/%s/%s", ggml_type_name(type),
                                  pool_names[op], f[0], f[1], f[2], conformance_shape(c, ne),
                                  conformance_layout_name((enum conformance_layout)layout))) {
                continue;
            }
            struct ggml_tensor *a = conformance_input(c, type, ne, (enum conformance_layout)layout);
            conformance_bound(c, op == GGML_OP_POOL_MAX ? 0 : oracle_units(f[0] + 1));
            conformance_check(c, ggml_pool_1d(c->ctx, a, op, f[0], f[1], f[2]));
        }
    }
}

CONFORMANCE_OP(POOL_1D, oracle_pool_1d, cases_pool_1d, 1, why_pool, .magnitude = magnitude_pool_1d);

// --- pool_2d -------------------------------------------------------------------------------------

static void pool_2d_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *out) {
    const struct ggml_tensor *a = node->src[0];
    const int32_t *p = node->op_params;
    struct pool pool = {-(double)FLT_MAX, {0, 0}, 0};
    for (int64_t k = 0; k < (int64_t)p[1] * p[2]; ++k) {
        const int64_t x = i[0] * p[3] + k % p[1] - p[5];
        const int64_t y = i[1] * p[4] + k / p[1] - p[6];
        if (x >= 0 && x < a->ne[0] && y >= 0 && y < a->ne[1])
            gather(&pool, oracle_value(a, x, y, i[2], i[3]));
    }
    const double n = (double)p[1] * p[2];
    out->value = p[0] == GGML_OP_POOL_MAX ? pool.max : pool.sum.value / n;
    out->size = pool.sum.size / n;
}
ORACLE_SUM(pool_2d)

struct pool_form {
    int k0, k1, s0, s1;
    float p0, p1;
};

static const struct pool_form pool_forms[] = {
    {2, 2, 2, 2, 0, 0}, {3, 3, 1, 1, 1, 1},       {1, 1, 1, 1, 0, 0},       {3, 2, 2, 3, 1, 0},
    {5, 4, 3, 2, 2, 3}, {2, 2, 2, 2, 0.5f, 0.5f}, {3, 3, 2, 2, 1.5f, 0.5f}, {2, 3, 5, 4, 0, 1},
};

static const struct conformance_extents pool_shapes[] = {
    {{9, 7, 3, 2}}, {{5, 5, 1, 1}}, {{32, 17, 2, 1}}, {{13, 31, 1, 3}}, {{8, 6, 0, 1}}};

static bool pool_2d_case(struct conformance *c, enum ggml_op_pool op, const struct pool_form *f,
                         enum ggml_type type, struct conformance_extents ne,
                         enum conformance_layout layout) {
    return conformance_case(c, "%s/%s/k=%d,%d/s=%d,%d/p=%g,%g/%s/%s", ggml_type_name(type),
                            pool_names[op], f->k0, f->k1, f->s0, f->s1, (double)f->p0,
                            (double)f->p1, conformance_shape(c, ne),
                            conformance_layout_name(layout));
}

// One window that covers an image of more pixels than drivers that limit loops can go through.
static void global_pool_cases(struct conformance *c) {
    static const struct pool_form whole = {303, 301, 1, 1, 0, 0};
    const struct conformance_extents ne = extents(303, 301, 1, 1);
    for (int op = 0; op < 2; ++op) {
        if (!pool_2d_case(c, (enum ggml_op_pool)op, &whole, GGML_TYPE_F32, ne, PACKED)) continue;
        // The last pixels are the largest.
        const struct conformance_fill rising = {FILL_RAMP, 0.5, 0x1p-17, NULL, 0};
        struct ggml_tensor *a = conformance_filled(c, GGML_TYPE_F32, ne, PACKED, rising);
        conformance_bound(c, op == GGML_OP_POOL_MAX ? 0 : oracle_units(303 * 301 + 1));
        conformance_check(
            c, ggml_pool_2d(c->ctx, a, (enum ggml_op_pool)op, 303, 301, 1, 1, 0.0f, 0.0f));
    }
}

static void cases_pool_2d(struct conformance *c) {
    global_pool_cases(c);
    for (int m = 0; m < 2 * N_POOL_TYPES * 8 * 5; ++m) {
        const enum ggml_op_pool op = (enum ggml_op_pool)(m % 2);
        const enum ggml_type type = conformance_floats[m / 2 % N_POOL_TYPES];
        const struct pool_form *f = &pool_forms[m / 6 % 8];
        const struct conformance_extents ne = pool_shapes[m / 48];
        for (int l = 0; l < 2; ++l) {
            const enum conformance_layout layout =
                l == 0 ? PACKED : (enum conformance_layout)(1 + m / 6 % 4);
            if (!pool_2d_case(c, op, f, type, ne, layout)) continue;
            struct ggml_tensor *a = conformance_input(c, type, ne, layout);
            conformance_bound(c, op == GGML_OP_POOL_MAX ? 0 : oracle_units(f->k0 * f->k1 + 1));
            conformance_check(
                c, ggml_pool_2d(c->ctx, a, op, f->k0, f->k1, f->s0, f->s1, f->p0, f->p1));
        }
    }
}

CONFORMANCE_OP(POOL_2D, oracle_pool_2d, cases_pool_2d, 1, why_pool, .magnitude = magnitude_pool_2d);

// --- pool_2d_back --------------------------------------------------------------------------------

static const char why_pool_back[] = "one quotient, and a sum per window that covers the element";

// Whether (x, y) is the first maximum of the window at output (ox, oy), in order of rows.
static bool is_first_max(const struct ggml_tensor *a, const int32_t *p, int64_t ox, int64_t oy,
                         const int64_t i[4]) {
    int64_t best_x = -1, best_y = -1;
    double best = -INFINITY;
    for (int64_t k = 0; k < (int64_t)p[1] * p[2]; ++k) {
        const int64_t x = ox * p[3] + k % p[1] - p[5];
        const int64_t y = oy * p[4] + k / p[1] - p[6];
        if (x < 0 || x >= a->ne[0] || y < 0 || y >= a->ne[1]) continue;
        const double value = oracle_value(a, x, y, i[2], i[3]);
        if (value <= best) continue;
        best = value;
        best_x = x;
        best_y = y;
    }
    return best_x == i[0] && best_y == i[1];
}

static void pool_2d_back_at(const struct ggml_tensor *node, const int64_t i[4],
                            struct oracle_sum *sum) {
    const struct ggml_tensor *grad = node->src[0];
    const int32_t *p = node->op_params;
    for (int64_t n = 0; n < grad->ne[0] * grad->ne[1]; ++n) {
        const int64_t ox = n % grad->ne[0], oy = n / grad->ne[0];
        const int64_t kx = i[0] + p[5] - ox * p[3], ky = i[1] + p[6] - oy * p[4];
        if (kx < 0 || kx >= p[1] || ky < 0 || ky >= p[2]) continue;
        const double g = oracle_value(grad, ox, oy, i[2], i[3]);
        if (p[0] == GGML_OP_POOL_AVG) {
            oracle_add(sum, g / ((double)p[1] * p[2]));
        } else if (is_first_max(node->src[1], p, ox, oy, i)) {
            oracle_add(sum, g);
        }
    }
}
ORACLE_SUM(pool_2d_back)

static void pool_2d_back_case(struct conformance *c, enum ggml_op_pool op,
                              const struct pool_form *f, enum ggml_type type,
                              struct conformance_extents ne, enum conformance_layout layout) {
    if (!pool_2d_case(c, op, f, type, ne, layout)) return;
    // Whole numbers, so that windows have several equal maxima.
    struct ggml_tensor *input = conformance_indices(c, type, ne, layout, 9);
    const struct ggml_tensor *forward =
        ggml_pool_2d(c->ctx, input, op, f->k0, f->k1, f->s0, f->s1, f->p0, f->p1);
    const int64_t ow = forward->ne[0], oh = forward->ne[1];
    ggml_reset(c->ctx);
    c->n_operands = 0;
    input = conformance_indices(c, type, ne, layout, 9);
    struct ggml_tensor *grad =
        conformance_input(c, GGML_TYPE_F32, extents(ow, oh, ne.ne[2], ne.ne[3]), PACKED);
    conformance_bound(c, oracle_units(f->k0 * f->k1 + 1));
    conformance_check(
        c, ggml_pool_2d_back(c->ctx, grad, input, op, f->k0, f->k1, f->s0, f->s1, f->p0, f->p1));
}

static void cases_pool_2d_back(struct conformance *c) {
    for (int m = 0; m < 2 * N_POOL_TYPES * 8 * 5; ++m) {
        const enum ggml_op_pool op = (enum ggml_op_pool)(m % 2);
        const enum ggml_type type = conformance_floats[m / 2 % N_POOL_TYPES];
        const struct pool_form *f = &pool_forms[m / 6 % 8];
        pool_2d_back_case(c, op, f, type, pool_shapes[m / 48], PACKED);
        pool_2d_back_case(c, op, f, type, pool_shapes[m / 48], GAPS);
    }
}

CONFORMANCE_OP(POOL_2D_BACK, oracle_pool_2d_back, cases_pool_2d_back, 1, why_pool_back,
               .magnitude = magnitude_pool_2d_back);
