// SPDX-License-Identifier: MIT
// Functions of one operand: the sub-operations of UNARY, and sqr, sqrt, log, sin, cos.
#include <math.h>

#include "case.h"

typedef struct ggml_tensor *(*unary_fn)(struct ggml_context *, struct ggml_tensor *);

static const char why_close[] = "F32 arithmetic with functions good to 4 units, rounded once";
static const char why_exact[] = "selects or changes signs only";
static const double close_bound = 16 * 16 * UNIT_F32 * UNIT_F32;

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(0.79788456080286535587989211986876 * x * (1 + 0.044715 * x * x)));
}

static double sign(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

// The clamp of a NaN is a number, as in C.
static double hard_sigmoid(double x) {
    return fmin(1, fmax(0, (x + 3) / 6));
}

static double xielu(const struct ggml_tensor *node, double x) {
    const double alpha_n = conformance_param_f32(node, 1);
    const double alpha_p = conformance_param_f32(node, 2);
    const double beta = conformance_param_f32(node, 3);
    const double eps = conformance_param_f32(node, 4);
    if (x > 0) return alpha_p * x * x + beta * x;
    return (expm1(fmin(x, eps)) - x) * alpha_n + beta * x;
}

static double unary(const struct ggml_tensor *node, double x) {
    switch ((enum ggml_unary_op)node->op_params[0]) {
    case GGML_UNARY_OP_ABS: return fabs(x);
    case GGML_UNARY_OP_SGN: return sign(x);
    case GGML_UNARY_OP_NEG: return -x;
    case GGML_UNARY_OP_STEP: return x > 0 ? 1 : 0;
    case GGML_UNARY_OP_TANH: return tanh(x);
    case GGML_UNARY_OP_ELU: return x > 0 ? x : expm1(x);
    case GGML_UNARY_OP_RELU: return x > 0 ? x : 0;
    case GGML_UNARY_OP_SIGMOID: return 1 / (1 + exp(-x));
    case GGML_UNARY_OP_GELU: return gelu(x);
    case GGML_UNARY_OP_GELU_QUICK: return x / (1 + exp(-1.702 * x));
    case GGML_UNARY_OP_SILU: return x / (1 + exp(-x));
    case GGML_UNARY_OP_HARDSWISH: return x * hard_sigmoid(x);
    case GGML_UNARY_OP_HARDSIGMOID: return hard_sigmoid(x);
    case GGML_UNARY_OP_EXP: return exp(x);
    case GGML_UNARY_OP_EXPM1: return expm1(x);
    case GGML_UNARY_OP_SOFTPLUS: return x > 20 ? x : log1p(exp(x));
    case GGML_UNARY_OP_GELU_ERF: return 0.5 * x * (1 + erf(x / sqrt(2)));
    case GGML_UNARY_OP_XIELU: return xielu(node, x);
    case GGML_UNARY_OP_FLOOR: return floor(x);
    case GGML_UNARY_OP_CEIL: return ceil(x);
    case GGML_UNARY_OP_ROUND: return round(x);
    case GGML_UNARY_OP_TRUNC: return trunc(x);
    default: return NAN;
    }
}

static double apply(const struct ggml_tensor *node, double x) {
    switch (node->op) {
    case GGML_OP_SQR: return x * x;
    case GGML_OP_SQRT: return sqrt(x);
    case GGML_OP_LOG: return log(x);
    case GGML_OP_SIN: return sin(x);
    case GGML_OP_COS: return cos(x);
    default: return unary(node, x);
    }
}

static void oracle_unary(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t i = 0; i < ggml_nelements(node); ++i)
        out[i] = apply(node, out[i]);
}

// e^x - 1 may be a subtraction.
static void expm1_magnitude(const struct ggml_tensor *node, double *out) {
    for (int64_t i = 0; i < ggml_nelements(node); ++i)
        out[i] = 1;
}

// gelu: 1 + tanh or erf of large negative numbers is a difference.
static void gelu_magnitude(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t i = 0; i < ggml_nelements(node); ++i)
        out[i] = isfinite(out[i]) ? fabs(out[i]) : 0;
}

// Where the numbers come from.
struct range {
    const char *name;
    double low, high;
    const double *values;
    int n_values;
};

static const double special_values[] = {0,   -0.0, 1,    -1,  INFINITY, NAN,  0.5, -0.5, 1.5, -1.5,
                                        2.5, -2.5, 20.5, -20, 3,        -3.1, 7,   -7,   19.5};
enum { N_SPECIAL = sizeof(special_values) / sizeof(special_values[0]) };

static const struct range usual_ranges[] = {
    {"-4..4", -4, 4, NULL, 0},
    {"-25..25", -25, 25, NULL, 0},
    {"-0.01..0.01", -0.01, 0.01, NULL, 0},
    {"special", 0, 0, special_values, N_SPECIAL},
};
enum { N_RANGES = sizeof(usual_ranges) / sizeof(usual_ranges[0]) };
static const struct range positive_ranges[] = {
    {"0.01..100", 0.01, 100, NULL, 0},
    {"0..0.1", 0x1p-20, 0.1, NULL, 0},
    {"1e-6..1", 1e-6, 1, NULL, 0},
    {"special", 0, 0, special_values, N_SPECIAL},
};

static void unary_case(struct conformance *c, unary_fn build, enum ggml_type type,
                       struct conformance_extents ne, enum conformance_layout layout,
                       const struct range *range, const char *form) {
    if (!conformance_case(c, "%s/%s/%s/%s/%s", ggml_type_name(type), conformance_shape(c, ne),
                          conformance_layout_name(layout), range->name, form)) {
        return;
    }
    const struct conformance_fill fill = {range->values ? FILL_CYCLE : FILL_UNIFORM, range->low,
                                          range->high, range->values, range->n_values};
    struct ggml_tensor *a = conformance_filled(c, type, ne, layout, fill);
    conformance_check(c, build(c->ctx, a));
}

// `in_place` may be NULL.
static void unary_cases(struct conformance *c, unary_fn build, unary_fn in_place,
                        const struct range *ranges) {
    for (int t = 0; t < 3; ++t) {
        const enum ggml_type type = conformance_floats[t];
        for (int s = 0; s < conformance_n_shapes; ++s) {
            const struct conformance_extents ne = conformance_shapes[s];
            const enum conformance_layout layout = (enum conformance_layout)((s + t) % 4);
            unary_case(c, build, type, ne, PACKED, &ranges[0], "new");
            if (layout != PACKED) unary_case(c, build, type, ne, layout, &ranges[s % 3], "new");
            if (in_place) unary_case(c, in_place, type, ne, layout, &ranges[0], "inplace");
        }
        for (int r = 1; r < N_RANGES; ++r) {
            for (int l = PACKED; l <= ROTATED; ++l)
                unary_case(c, build, type, extents(61, 7, 3, 2), (enum conformance_layout)l,
                           &ranges[r], "wide");
        }
    }
}

#define CASES(name, ranges)                                                                        \
    static void cases_##name(struct conformance *c) {                                              \
        unary_cases(c, ggml_##name, ggml_##name##_inplace, ranges);                                \
    }
#define CLOSE(NAME, name, ranges)                                                                  \
    CASES(name, ranges)                                                                            \
    CONFORMANCE_OP(NAME, oracle_unary, cases_##name, close_bound, why_close, PLAIN)
#define EXACT(NAME, name)                                                                          \
    CASES(name, usual_ranges)                                                                      \
    CONFORMANCE_OP(NAME, oracle_unary, cases_##name, 0, why_exact, PLAIN)

EXACT(ABS, abs);
EXACT(SGN, sgn);
EXACT(NEG, neg);
EXACT(STEP, step);
EXACT(RELU, relu);
EXACT(FLOOR, floor);
EXACT(CEIL, ceil);
EXACT(ROUND, round);
EXACT(TRUNC, trunc);
CLOSE(TANH, tanh, usual_ranges);
CLOSE(ELU, elu, usual_ranges);
CLOSE(SIGMOID, sigmoid, usual_ranges);
CASES(gelu, usual_ranges)
CONFORMANCE_OP(GELU, oracle_unary, cases_gelu, close_bound, why_close, .magnitude = gelu_magnitude);
CLOSE(GELU_QUICK, gelu_quick, usual_ranges);
CASES(gelu_erf, usual_ranges)
CONFORMANCE_OP(GELU_ERF, oracle_unary, cases_gelu_erf, close_bound, why_close,
               .magnitude = gelu_magnitude);
CLOSE(SILU, silu, usual_ranges);
CLOSE(EXP, exp, usual_ranges);
CLOSE(SOFTPLUS, softplus, usual_ranges);
CLOSE(SQR, sqr, usual_ranges);
CLOSE(SQRT, sqrt, positive_ranges);
CLOSE(LOG, log, positive_ranges);
CLOSE(SIN, sin, usual_ranges);
CLOSE(COS, cos, usual_ranges);

CASES(expm1, usual_ranges)
CONFORMANCE_OP(EXPM1, oracle_unary, cases_expm1, close_bound, why_close,
               .magnitude = expm1_magnitude);

static void cases_hardswish(struct conformance *c) {
    unary_cases(c, ggml_hardswish, NULL, usual_ranges);
}

static void cases_hardsigmoid(struct conformance *c) {
    unary_cases(c, ggml_hardsigmoid, NULL, usual_ranges);
}

CONFORMANCE_OP(HARDSWISH, oracle_unary, cases_hardswish, close_bound, why_close, PLAIN);
CONFORMANCE_OP(HARDSIGMOID, oracle_unary, cases_hardsigmoid, close_bound, why_close, PLAIN);

static struct ggml_tensor *xielu_usual(struct ggml_context *ctx, struct ggml_tensor *a) {
    return ggml_xielu(ctx, a, 0.8f, 0.7f, 0.5f, -1e-6f);
}

static struct ggml_tensor *xielu_large(struct ggml_context *ctx, struct ggml_tensor *a) {
    return ggml_xielu(ctx, a, 25.0f, -3.0f, 1.5f, -0.25f);
}

static void cases_xielu(struct conformance *c) {
    unary_cases(c, xielu_usual, NULL, usual_ranges);
    for (int t = 0; t < 3; ++t)
        unary_case(c, xielu_large, conformance_floats[t], extents(33, 5, 1, 1), PACKED,
                   &usual_ranges[0], "large");
}
CONFORMANCE_OP(XIELU, oracle_unary, cases_xielu, close_bound, why_close, PLAIN);

// The general builder, for every sub-operation.
static void cases_unary(struct conformance *c) {
    for (int op = 0; op < GGML_UNARY_OP_COUNT; ++op) {
        for (int t = 0; t < 3 && op != GGML_UNARY_OP_XIELU; ++t) {
            if (!conformance_case(c, "%s/%s", ggml_type_name(conformance_floats[t]),
                                  ggml_unary_op_name((enum ggml_unary_op)op))) {
                continue;
            }
            struct ggml_tensor *a =
                conformance_range(c, conformance_floats[t], extents(67, 3, 1, 1), PACKED, -4, 4);
            conformance_check(c, ggml_unary(c->ctx, a, (enum ggml_unary_op)op));
        }
    }
}
CONFORMANCE_OP(UNARY, oracle_unary, cases_unary, close_bound, why_close, PLAIN);
