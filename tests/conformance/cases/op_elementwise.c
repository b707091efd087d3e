// SPDX-License-Identifier: MIT
// Element-wise operations with parameters, masks, generators, sums with a scalar or chosen rows.
#include <math.h>

#include "case.h"

static const char why_close[] = "a few F32 operations, rounded once";
static const char why_exact[] = "selects or writes constants only";
static const double close_bound = 16 * UNIT_F32 * UNIT_F32;

static void index_of(const struct ggml_tensor *t, int64_t n, int64_t i[4]) {
    ggml_unravel_index(t, n, &i[0], &i[1], &i[2], &i[3]);
}

// One case for each type, shape and layout; `form` passes through to the builder.
typedef struct ggml_tensor *(*build_fn)(struct conformance *c, struct ggml_tensor *a, int form);

struct sweep {
    build_fn build;
    const char *const *forms;
    int n_forms;
    int n_types; // of F32, F16, BF16
    int last_layout;
    double low, high;
};

static void sweep_case(struct conformance *c, const struct sweep *s, enum ggml_type type,
                       struct conformance_extents ne, enum conformance_layout layout, int form) {
    if (!conformance_case(c, "%s/%s/%s/%s", ggml_type_name(type), conformance_shape(c, ne),
                          conformance_layout_name(layout), s->forms[form])) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, type, ne, layout, s->low, s->high);
    conformance_check(c, s->build(c, a, form));
}

static void sweep(struct conformance *c, const struct sweep *s) {
    for (int t = 0; t < s->n_types; ++t) {
        for (int n = 0; n < conformance_n_shapes; ++n) {
            for (int form = 0; form < s->n_forms; ++form)
                sweep_case(c, s, conformance_floats[t], conformance_shapes[n],
                           (enum conformance_layout)((n + form + t) % (s->last_layout + 1)), form);
        }
    }
}

// --- scale, clamp, fill, leaky_relu --------------------------------------------------------------

static void oracle_scale(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = conformance_param_f32(node, 0) * out[n] + conformance_param_f32(node, 1);
}

static void scale_magnitude(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = fabs(conformance_param_f32(node, 0) * out[n]) +
                 fabs((double)conformance_param_f32(node, 1));
}

static struct ggml_tensor *build_scale(struct conformance *c, struct ggml_tensor *a, int form) {
    switch (form) {
    case 0: return ggml_scale(c->ctx, a, 0.37f);
    case 1: return ggml_scale_inplace(c->ctx, a, -2.5f);
    case 2: return ggml_scale_bias(c->ctx, a, 1.7f, -0.4f);
    case 3: return ggml_scale_bias_inplace(c->ctx, a, -0.9f, 3.0f);
    default: return ggml_scale(c->ctx, a, 0.0f);
    }
}

static void cases_scale(struct conformance *c) {
    static const char *const forms[] = {"new", "inplace", "bias", "bias-inplace", "zero"};
    const struct sweep s = {build_scale, forms, 5, 3, PACKED, -4, 4};
    sweep(c, &s);
    for (int form = 0; form < 4; ++form) {
        if (!conformance_case(c, "f32/33x5/padded/%s", forms[form])) continue;
        struct ggml_tensor *whole = ggml_new_tensor_2d(c->ctx, GGML_TYPE_F32, 40, 5);
        struct ggml_tensor *a = ggml_view_2d(c->ctx, whole, 33, 5, whole->nb[1], 0);
        conformance_fill(c, a, (struct conformance_fill){FILL_UNIFORM, -4, 4, NULL, 0});
        conformance_check(c, build_scale(c, a, form));
    }
}
CONFORMANCE_OP(SCALE, oracle_scale, cases_scale, close_bound, why_close,
               .magnitude = scale_magnitude);

static void oracle_clamp(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = fmax(fmin(out[n], conformance_param_f32(node, 1)), conformance_param_f32(node, 0));
}

static struct ggml_tensor *build_clamp(struct conformance *c, struct ggml_tensor *a, int form) {
    static const float bounds[][2] = {{-0.5f, 0.75f}, {-INFINITY, 1.25f}, {0, INFINITY}, {2, 2}};
    return ggml_clamp(c->ctx, a, bounds[form][0], bounds[form][1]);
}

static void cases_clamp(struct conformance *c) {
    static const char *const forms[] = {"-0.5..0.75", "below-1.25", "above-0", "2..2"};
    sweep(c, &(struct sweep){build_clamp, forms, 4, 3, ROTATED, -4, 4});
}
CONFORMANCE_OP(CLAMP, oracle_clamp, cases_clamp, 0, why_exact, PLAIN);

static void oracle_fill(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = conformance_param_f32(node, 0);
}

static struct ggml_tensor *build_fill(struct conformance *c, struct ggml_tensor *a, int form) {
    static const float values[] = {0, -2.5f, 1e-3f, INFINITY};
    return form == 1 ? ggml_fill_inplace(c->ctx, a, values[form])
                     : ggml_fill(c->ctx, a, values[form]);
}

static void cases_fill(struct conformance *c) {
    static const char *const forms[] = {"0", "-2.5-inplace", "0.001", "inf"};
    sweep(c, &(struct sweep){build_fill, forms, 4, 2, PACKED, -4, 4});
}
CONFORMANCE_OP(FILL, oracle_fill, cases_fill, 0, why_exact, PLAIN);

static void oracle_leaky_relu(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = fmax(out[n], 0) + conformance_param_f32(node, 0) * fmin(out[n], 0);
}

static struct ggml_tensor *build_leaky_relu(struct conformance *c, struct ggml_tensor *a,
                                            int form) {
    static const float slopes[] = {0.1f, 0, 2, 0.01f};
    return ggml_leaky_relu(c->ctx, a, slopes[form], form == 3);
}

static void cases_leaky_relu(struct conformance *c) {
    static const char *const forms[] = {"0.1", "0", "2", "0.01-inplace"};
    sweep(c, &(struct sweep){build_leaky_relu, forms, 4, 3, ROTATED, -4, 4});
}
CONFORMANCE_OP(LEAKY_RELU, oracle_leaky_relu, cases_leaky_relu, close_bound, why_close, PLAIN);

static void oracle_silu_back(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        index_of(node, n, i);
        const double dy = oracle_value(node->src[0], i[0], i[1], i[2], i[3]);
        const double x = oracle_value(node->src[1], i[0], i[1], i[2], i[3]);
        const double s = 1 / (1 + exp(-x));
        out[n] = dy * s * (1 + x * (1 - s));
    }
}

static void silu_back_magnitude(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        index_of(node, n, i);
        const double x = oracle_value(node->src[1], i[0], i[1], i[2], i[3]);
        out[n] = fabs(oracle_value(node->src[0], i[0], i[1], i[2], i[3])) *
                 fmax(1 / (1 + exp(-x)), 1e-3);
    }
}

static struct ggml_tensor *build_silu_back(struct conformance *c, struct ggml_tensor *a, int form) {
    const struct conformance_extents ne = extents(a->ne[0], a->ne[1], a->ne[2], a->ne[3]);
    return ggml_silu_back(c->ctx, a,
                          conformance_range(c, a->type, ne, (enum conformance_layout)form, -8, 8));
}

static void cases_silu_back(struct conformance *c) {
    static const char *const forms[] = {"packed", "gaps"};
    sweep(c, &(struct sweep){build_silu_back, forms, 2, 3, ROTATED, -1, 1});
}
CONFORMANCE_OP(SILU_BACK, oracle_silu_back, cases_silu_back, 16 * 16 * UNIT_F32 * UNIT_F32,
               "F32 arithmetic with an exponential good to 4 units",
               .magnitude = silu_back_magnitude);

// --- triangles -----------------------------------------------------------------------------------

static bool is_kept(enum ggml_tri_type type, int64_t column, int64_t row) {
    switch (type) {
    case GGML_TRI_TYPE_LOWER: return column < row;
    case GGML_TRI_TYPE_LOWER_DIAG: return column <= row;
    case GGML_TRI_TYPE_UPPER: return column > row;
    default: return column >= row;
    }
}

static void oracle_tri(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        index_of(node, n, i);
        if (!is_kept((enum ggml_tri_type)node->op_params[0], i[0], i[1])) out[n] = 0;
    }
}

static void cases_tri(struct conformance *c) {
    static const int64_t widths[] = {1, 2, 7, 32, 33, 100, 0};
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); ++w) {
        for (int batch = 1; batch < 4; ++batch) {
            for (int type = 0; type < 4; ++type) {
                if (!conformance_case(c, "f32/%dx%dx%d/type%d", (int)widths[w], (int)widths[w],
                                      batch, type)) {
                    continue;
                }
                struct ggml_tensor *a = conformance_input(
                    c, GGML_TYPE_F32, extents(widths[w], widths[w], batch, 1), PACKED);
                conformance_check(c, ggml_tri(c->ctx, a, (enum ggml_tri_type)type));
            }
        }
    }
}
CONFORMANCE_OP(TRI, oracle_tri, cases_tri, 0, why_exact, PLAIN);

static void oracle_diag_mask(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        index_of(node, n, i);
        if (i[0] > node->op_params[0] + i[1])
            out[n] = node->op == GGML_OP_DIAG_MASK_INF ? -INFINITY : 0;
    }
}

static struct ggml_tensor *build_mask_inf(struct conformance *c, struct ggml_tensor *a, int form) {
    return form == 1 ? ggml_diag_mask_inf_inplace(c->ctx, a, 3)
                     : ggml_diag_mask_inf(c->ctx, a, form * 5);
}

static struct ggml_tensor *build_mask_zero(struct conformance *c, struct ggml_tensor *a, int form) {
    return form == 1 ? ggml_diag_mask_zero_inplace(c->ctx, a, 3)
                     : ggml_diag_mask_zero(c->ctx, a, form * 5);
}

static const char *const mask_forms[] = {"past=0", "past=3-inplace", "past=10"};

static void cases_diag_mask_inf(struct conformance *c) {
    sweep(c, &(struct sweep){build_mask_inf, mask_forms, 3, 1, PACKED, -4, 4});
}

static void cases_diag_mask_zero(struct conformance *c) {
    sweep(c, &(struct sweep){build_mask_zero, mask_forms, 3, 1, PACKED, -4, 4});
}

CONFORMANCE_OP(DIAG_MASK_INF, oracle_diag_mask, cases_diag_mask_inf, 0, why_exact, PLAIN);
CONFORMANCE_OP(DIAG_MASK_ZERO, oracle_diag_mask, cases_diag_mask_zero, 0, why_exact, PLAIN);

// --- generators ----------------------------------------------------------------------------------

static void oracle_arange(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] =
            conformance_param_f32(node, 0) + (double)conformance_param_f32(node, 2) * (double)n;
}

static void cases_arange(struct conformance *c) {
    static const float ranges[][3] = {{0, 1, 1},    {0, 10, 1},    {2, 5, 0.5f},   {-3, 4, 0.3f},
                                      {0, 1000, 1}, {1, 2, 0.01f}, {-100, 0, 7},   {0.5f, 0.75f, 1},
                                      {0, 4096, 1}, {5, 6, 0.1f},  {-1, 1, 0.001f}};
    for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); ++r) {
        const float *x = ranges[r];
        if (conformance_case(c, "f32/%g..%g/by-%g", (double)x[0], (double)x[1], (double)x[2]))
            conformance_check(c, ggml_arange(c->ctx, x[0], x[1], x[2]));
    }
}

static void arange_magnitude(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = fmax(fabs((double)conformance_param_f32(node, 0)),
                      fabs((double)conformance_param_f32(node, 1)));
}
CONFORMANCE_OP(ARANGE, oracle_arange, cases_arange, close_bound, why_close,
               .magnitude = arange_magnitude);

// --- scalars and chosen rows ---------------------------------------------------------------------

static void oracle_add1(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] += oracle_value(node->src[1], 0, 0, 0, 0);
}

// The deprecated builders are part of the interface.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void add1_case(struct conformance *c, enum ggml_type a_type, enum ggml_type b_type,
                      struct conformance_extents ne, bool in_place) {
    if (!conformance_case(c, "%s,%s/%s/%s", ggml_type_name(a_type), ggml_type_name(b_type),
                          conformance_shape(c, ne), in_place ? "inplace" : "new")) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, a_type, ne, PACKED, 0, 4);
    struct ggml_tensor *b = conformance_range(c, b_type, extents(1, 1, 1, 1), PACKED, 1, 2);
    conformance_check(c, in_place ? ggml_add1_inplace(c->ctx, a, b) : ggml_add1(c->ctx, a, b));
}

#pragma GCC diagnostic pop

static void cases_add1(struct conformance *c) {
    for (int t = 0; t < 3; ++t) {
        for (int s = 0; s < conformance_n_shapes; ++s) {
            for (int in_place = 0; in_place < 2; ++in_place) {
                add1_case(c, conformance_floats[t], GGML_TYPE_F32, conformance_shapes[s], in_place);
                if (t > 0)
                    add1_case(c, conformance_floats[t], conformance_floats[t],
                              conformance_shapes[s], in_place);
            }
        }
    }
}
CONFORMANCE_OP(ADD1, oracle_add1, cases_add1, close_bound, why_close, PLAIN);

static void oracle_add_id(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        index_of(node, n, i);
        const int64_t row = (int64_t)oracle_value(node->src[2], i[1], i[2], 0, 0);
        out[n] = oracle_value(node->src[0], i[0], i[1], i[2], i[3]) +
                 oracle_value(node->src[1], i[0], row, 0, 0);
    }
}

static void cases_add_id(struct conformance *c) {
    static const int64_t shapes[][4] = {{1, 1, 1, 1},   {33, 2, 5, 4},  {64, 4, 1, 8},
                                        {127, 1, 9, 3}, {256, 3, 7, 5}, {16, 2, 0, 4}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s) {
        for (int l = PACKED; l <= TRANSPOSED; ++l) {
            const int64_t *x = shapes[s];
            const enum conformance_layout ids_layout = (enum conformance_layout)l;
            const enum conformance_layout layout = l == TRANSPOSED ? PACKED : ids_layout;
            if (!conformance_case(c, "f32/n=%d,slots=%d,tokens=%d,rows=%d/%s", (int)x[0], (int)x[1],
                                  (int)x[2], (int)x[3], conformance_layout_name(ids_layout))) {
                continue;
            }
            struct ggml_tensor *a =
                conformance_input(c, GGML_TYPE_F32, extents(x[0], x[1], x[2], 1), layout);
            struct ggml_tensor *b =
                conformance_input(c, GGML_TYPE_F32, extents(x[0], x[3], 1, 1), layout);
            struct ggml_tensor *ids =
                conformance_indices(c, GGML_TYPE_I32, extents(x[1], x[2], 1, 1), ids_layout, x[3]);
            conformance_check(c, ggml_add_id(c->ctx, a, b, ids));
        }
    }
}
CONFORMANCE_OP(ADD_ID, oracle_add_id, cases_add_id, 0, "one F32 addition, correctly rounded",
               PLAIN);
