// SPDX-License-Identifier: MIT
// Gated linear units: act(x) g.
#include <math.h>

#include "case.h"

static const char why_glu[] = "F32 arithmetic with functions good to 4 units, rounded once";
// A half-precision activation may be rounded before the product.
static const double glu_bound = 16 * 16 * UNIT_F32 * UNIT_F32;

static double gate(const struct ggml_tensor *node, double x, double g) {
    const double alpha = conformance_param_f32(node, 2);
    const double limit = conformance_param_f32(node, 3);
    switch ((enum ggml_glu_op)node->op_params[0]) {
    case GGML_GLU_OP_REGLU: return (x > 0 ? x : 0) * g;
    case GGML_GLU_OP_GEGLU:
        return 0.5 * x * (1 + tanh(0.79788456080286535588 * x * (1 + 0.044715 * x * x))) * g;
    case GGML_GLU_OP_SWIGLU: return x / (1 + exp(-x)) * g;
    case GGML_GLU_OP_GEGLU_ERF: return 0.5 * x * (1 + erf(x / sqrt(2))) * g;
    case GGML_GLU_OP_GEGLU_QUICK: return x / (1 + exp(-1.702 * x)) * g;
    case GGML_GLU_OP_SWIGLU_OAI:
        x = fmin(x, limit);
        return x / (1 + exp(-alpha * x)) * (fmin(limit, fmax(-limit, g)) + 1);
    case GGML_GLU_OP_SWIGLU_CLAMP:
        x = fmin(x, limit);
        return x / (1 + exp(-x)) * fmin(limit, fmax(-limit, g));
    default: return NAN;
    }
}

static void glu(const struct ggml_tensor *node, double *out, bool magnitude) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const int64_t half = node->ne[0];
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t i0, i1, i2, i3;
        ggml_unravel_index(node, i, &i0, &i1, &i2, &i3);
        double x = oracle_value(a, i0, i1, i2, i3);
        double g = b ? oracle_value(b, i0, i1, i2, i3) : oracle_value(a, i0 + half, i1, i2, i3);
        if (!b && node->op_params[1] != 0) {
            const double other = x;
            x = g;
            g = other;
        }
        out[i] = magnitude ? fabs(x * g) : gate(node, x, g);
    }
}

static void oracle_glu(const struct ggml_tensor *node, double *out) {
    glu(node, out, false);
}

// 1 + tanh or erf of a large negative number is a difference.
static void gelu_magnitude(const struct ggml_tensor *node, double *out) {
    glu(node, out, true);
}

// The halves of an odd row leave its last element unread.
enum form { SINGLE, SWAPPED, SPLIT, ODD };
static const char *const form_names[] = {"single", "swapped", "split", "odd"};

// Whether there is no builder for the swapped form.
static bool has_limits(enum ggml_glu_op op) {
    return op == GGML_GLU_OP_SWIGLU_OAI || op == GGML_GLU_OP_SWIGLU_CLAMP;
}

static struct ggml_tensor *build(struct conformance *c, enum ggml_glu_op op, enum form form,
                                 struct ggml_tensor *a, struct ggml_tensor *b) {
    if (op == GGML_GLU_OP_SWIGLU_OAI) return ggml_swiglu_oai(c->ctx, a, b, 1.702f, 1.5f);
    if (op == GGML_GLU_OP_SWIGLU_CLAMP) return ggml_swiglu_clamp(c->ctx, a, b, 1.5f);
    if (form == SPLIT) return ggml_glu_split(c->ctx, a, b, op);
    return ggml_glu(c->ctx, a, op, form == SWAPPED);
}

static void glu_case(struct conformance *c, enum ggml_glu_op op, enum ggml_type type,
                     struct conformance_extents ne, enum form form, enum conformance_layout layout,
                     double range) {
    struct conformance_extents ne_a = ne;
    if (form != SPLIT) ne_a.ne[0] = 2 * ne.ne[0] + (form == ODD);
    if (!conformance_case(c, "%s/%s/%s/%s/%g", ggml_type_name(type), conformance_shape(c, ne),
                          form_names[form], conformance_layout_name(layout), range)) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, type, ne_a, layout, -range, range);
    struct ggml_tensor *b = form == SPLIT ? conformance_range(c, type, ne, layout, -2, 2) : NULL;
    conformance_check(c, build(c, op, form, a, b));
}

static void glu_cases(struct conformance *c, enum ggml_glu_op op) {
    for (int t = 0; t < 3; ++t) {
        for (int s = 0; s < conformance_n_shapes; ++s) {
            const struct conformance_extents ne = conformance_shapes[s];
            const bool matrix = ne.ne[2] * ne.ne[3] == 1;
            for (int form = SINGLE; form <= ODD; ++form) {
                if ((has_limits(op) && form == SWAPPED) || (form == ODD && !matrix)) continue;
                glu_case(c, op, conformance_floats[t], ne, (enum form)form, PACKED, 4);
                if (matrix) glu_case(c, op, conformance_floats[t], ne, (enum form)form, GAPS, 20);
            }
        }
    }
}

#define GLU_ROW(NAME, ...)                                                                         \
    static void cases_##NAME(struct conformance *c) {                                              \
        glu_cases(c, GGML_GLU_OP_##NAME);                                                          \
    }                                                                                              \
    CONFORMANCE_OP(NAME, oracle_glu, cases_##NAME, glu_bound, why_glu, __VA_ARGS__)

GLU_ROW(REGLU, PLAIN);
GLU_ROW(GEGLU, .magnitude = gelu_magnitude);
GLU_ROW(SWIGLU, PLAIN);
GLU_ROW(SWIGLU_OAI, PLAIN);
GLU_ROW(GEGLU_ERF, .magnitude = gelu_magnitude);
GLU_ROW(GEGLU_QUICK, PLAIN);
GLU_ROW(SWIGLU_CLAMP, PLAIN);

typedef struct ggml_tensor *(*single_fn)(struct ggml_context *, struct ggml_tensor *);
typedef struct ggml_tensor *(*split_fn)(struct ggml_context *, struct ggml_tensor *,
                                        struct ggml_tensor *);

struct named_builders {
    const char *name;
    single_fn single, swapped;
    split_fn split;
};

static const struct named_builders named[] = {
    {"reglu", ggml_reglu, ggml_reglu_swapped, ggml_reglu_split},
    {"geglu", ggml_geglu, ggml_geglu_swapped, ggml_geglu_split},
    {"swiglu", ggml_swiglu, ggml_swiglu_swapped, ggml_swiglu_split},
    {"geglu_erf", ggml_geglu_erf, ggml_geglu_erf_swapped, ggml_geglu_erf_split},
    {"geglu_quick", ggml_geglu_quick, ggml_geglu_quick_swapped, ggml_geglu_quick_split},
};

// The named builders.
static void cases_glu(struct conformance *c) {
    for (int t = 0; t < 3; ++t) {
        const enum ggml_type type = conformance_floats[t];
        for (size_t b = 0; b < sizeof(named) / sizeof(named[0]); ++b) {
            for (int form = SINGLE; form <= SPLIT; ++form) {
                if (!conformance_case(c, "%s/%s/%s", ggml_type_name(type), named[b].name,
                                      form_names[form])) {
                    continue;
                }
                struct ggml_tensor *x =
                    conformance_range(c, type, extents(34, 3, 2, 1), PACKED, -4, 4);
                struct ggml_tensor *g = conformance_input(c, type, extents(34, 3, 2, 1), PACKED);
                conformance_check(c, form == SPLIT     ? named[b].split(c->ctx, x, g)
                                     : form == SWAPPED ? named[b].swapped(c->ctx, x)
                                                       : named[b].single(c->ctx, x));
            }
        }
    }
}
CONFORMANCE_OP(GLU, oracle_glu, cases_glu, glu_bound, why_glu, PLAIN);
