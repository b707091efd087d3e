// SPDX-License-Identifier: MIT
// Element-wise kernels against loops in double precision.
#include "cpu_test.h"

enum { N_SHAPES = 5 };
static const struct extents shapes[N_SHAPES] = {
    {{1, 1, 1, 1}}, {{7, 3, 2, 2}}, {{33, 5, 1, 3}}, {{1031, 2, 1, 1}}, {{2048, 17, 1, 1}}};

// --- binary ----------------------------------------------------------------------------

typedef struct ggml_tensor *(*binary_builder)(struct ggml_context *, struct ggml_tensor *,
                                              struct ggml_tensor *);
struct binary {
    const char *name;
    binary_builder build;
    char op;
};
static const struct binary binaries[] = {
    {"add", ggml_add, '+'}, {"sub", ggml_sub, '-'}, {"mul", ggml_mul, '*'}, {"div", ggml_div, '/'}};

static double apply(char op, double a, double b) {
    return op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b;
}

static double binary_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct binary *binary = context;
    const struct ggml_tensor *a = y->src[0], *b = y->src[1];
    return apply(binary->op, test_get(a, i[0], i[1], i[2], i[3]),
                 test_get(b, i[0] % b->ne[0], i[1] % b->ne[1], i[2] % b->ne[2], i[3] % b->ne[3]));
}

static void test_binary_types(void **state) {
    (void)state;
    static const enum ggml_type types[][2] = {{GGML_TYPE_F32, GGML_TYPE_F32},
                                              {GGML_TYPE_F16, GGML_TYPE_F16},
                                              {GGML_TYPE_F16, GGML_TYPE_F32},
                                              {GGML_TYPE_BF16, GGML_TYPE_BF16},
                                              {GGML_TYPE_BF16, GGML_TYPE_F32}};
    for (int op = 0; op < 4; ++op) {
        for (int k = 0; k < 5; ++k) {
            struct ggml_context *ctx = test_context(4);
            const struct extents shape = shapes[(op + k) % N_SHAPES];
            struct ggml_tensor *a = test_tensor(ctx, types[k][0], shape, 1, -4, 4);
            struct ggml_tensor *b = test_gapped(ctx, types[k][1], shape, 2, 0.5f, 3);
            test_against(ctx, binaries[op].build(ctx, a, b), binary_oracle, &binaries[op],
                         binaries[op].name);
            ggml_free(ctx);
        }
    }
}

static void test_binary_broadcasts_every_dimension(void **state) {
    (void)state;
    static const struct extents b_shapes[] = {{{1, 1, 1, 1}}, {{12, 1, 1, 1}}, {{6, 1, 2, 1}},
                                              {{1, 3, 1, 4}}, {{4, 3, 2, 2}},  {{12, 6, 2, 4}}};
    for (size_t k = 0; k < sizeof(b_shapes) / sizeof(b_shapes[0]); ++k) {
        struct ggml_context *ctx = test_context(2);
        struct ggml_tensor *a =
            test_tensor(ctx, GGML_TYPE_F32, (struct extents){{12, 6, 2, 4}}, 3, -1, 1);
        struct ggml_tensor *b = test_tensor(ctx, GGML_TYPE_F32, b_shapes[k], 4, 1, 2);
        test_against(ctx, ggml_sub(ctx, a, b), binary_oracle, &binaries[1], "broadcast sub");
        ggml_free(ctx);
    }
}

static void test_binary_strided_and_permuted(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *a =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{9, 5, 4, 2}}, 5, -1, 1);
    struct ggml_tensor *b =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{5, 9, 4, 2}}, 6, -1, 1);
    test_against(ctx, ggml_mul(ctx, a, ggml_transpose(ctx, b)), binary_oracle, &binaries[2],
                 "mul by a transposed tensor");
    struct ggml_tensor *c =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{9, 4, 5, 2}}, 7, -1, 1);
    test_against(ctx, ggml_add(ctx, ggml_permute(ctx, c, 0, 2, 1, 3), a), binary_oracle,
                 &binaries[0], "add to a permuted tensor");
    ggml_free(ctx);
}

static double add_id_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const int id = ggml_get_i32_nd(y->src[2], (int)i[1], (int)i[2], 0, 0);
    return test_get(y->src[0], i[0], i[1], i[2], i[3]) + test_get(y->src[1], i[0], id, 0, 0);
}

static void test_add_id(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(4);
    struct ggml_tensor *a =
        test_gapped(ctx, GGML_TYPE_F32, (struct extents){{33, 4, 200, 1}}, 8, -1, 1);
    struct ggml_tensor *b =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{33, 7, 1, 1}}, 9, -1, 1);
    struct ggml_tensor *ids =
        test_tensor(ctx, GGML_TYPE_I32, (struct extents){{4, 200, 1, 1}}, 10, 0, 7);
    struct ggml_tensor *y = ggml_add_id(ctx, a, b, ids);
    test_against(ctx, y, add_id_oracle, NULL, "add_id");
    ggml_set_i32_1d(ids, 777, 7);
    assert_int_equal(test_compute(test_graph(ctx, y), 2), GGML_STATUS_FAILED);
    ggml_set_i32_1d(ids, 777, -1);
    assert_int_equal(test_compute(test_graph(ctx, y), 1), GGML_STATUS_FAILED);
    ggml_free(ctx);
}

// --- one operand -----------------------------------------------------------------------

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static double gelu(double x) {
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * x * (1.0 + 0.044715 * x * x)));
}

static double clamp01(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double unary(enum ggml_unary_op op, double x) {
    switch (op) {
    case GGML_UNARY_OP_ABS: return fabs(x);
    case GGML_UNARY_OP_SGN: return (x > 0) - (x < 0);
    case GGML_UNARY_OP_NEG: return -x;
    case GGML_UNARY_OP_STEP: return x > 0;
    case GGML_UNARY_OP_TANH: return tanh(x);
    case GGML_UNARY_OP_ELU: return x > 0 ? x : expm1(x);
    case GGML_UNARY_OP_RELU: return x > 0 ? x : 0;
    case GGML_UNARY_OP_SIGMOID: return sigmoid(x);
    case GGML_UNARY_OP_GELU: return gelu(x);
    case GGML_UNARY_OP_GELU_QUICK: return x * sigmoid(1.702 * x);
    case GGML_UNARY_OP_SILU: return x * sigmoid(x);
    case GGML_UNARY_OP_HARDSWISH: return x * clamp01((x + 3) / 6);
    case GGML_UNARY_OP_HARDSIGMOID: return clamp01((x + 3) / 6);
    case GGML_UNARY_OP_EXP: return exp(x);
    case GGML_UNARY_OP_EXPM1: return expm1(x);
    case GGML_UNARY_OP_SOFTPLUS: return x > 20 ? x : log1p(exp(x));
    case GGML_UNARY_OP_GELU_ERF: return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
    case GGML_UNARY_OP_FLOOR: return floor(x);
    case GGML_UNARY_OP_CEIL: return ceil(x);
    case GGML_UNARY_OP_ROUND: return round(x);
    default: return trunc(x);
    }
}

static double unary_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const enum ggml_unary_op op = *(const enum ggml_unary_op *)context;
    return unary(op, test_get(y->src[0], i[0], i[1], i[2], i[3]));
}

static void test_unary_family(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    for (int op = 0; op < GGML_UNARY_OP_COUNT; ++op) {
        const enum ggml_unary_op sub = (enum ggml_unary_op)op;
        if (sub == GGML_UNARY_OP_XIELU) continue;
        for (int k = 0; k < 3; ++k) {
            struct ggml_context *ctx = test_context(2);
            struct ggml_tensor *x =
                test_gapped(ctx, types[k], shapes[(op + k) % N_SHAPES], (uint32_t)op + 10, -11, 11);
            test_against(ctx, ggml_unary(ctx, x, sub), unary_oracle, &sub, ggml_unary_op_name(sub));
            ggml_free(ctx);
        }
    }
}

static double xielu_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const double x = test_get(y->src[0], i[0], i[1], i[2], i[3]);
    const double alpha_n = 0.5 + log1p(exp(0.8)), alpha_p = log1p(exp(0.4)), beta = 0.5;
    if (x > 0) return alpha_p * x * x + beta * x;
    return (expm1(fmin(x, -1e-6)) - x) * alpha_n + beta * x;
}

static double sqr_of(double x) {
    return x * x;
}

static double scale_of(double x) {
    return 1.5 * x - 0.25;
}

static double clamp_of(double x) {
    return x < -1 ? -1 : x > 2 ? 2 : x;
}

static double leaky_of(double x) {
    return x > 0 ? x : (double)0.1f * x;
}

typedef double (*function)(double);

static double function_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    return (*(const function *)context)(test_get(y->src[0], i[0], i[1], i[2], i[3]));
}

static void test_functions(void **state) {
    (void)state;
    for (int k = 0; k < N_SHAPES; ++k) {
        struct ggml_context *ctx = test_context(4);
        struct ggml_tensor *x = test_tensor(ctx, GGML_TYPE_F32, shapes[k], 20, 0.1f, 9);
        struct ggml_tensor *h = test_tensor(ctx, GGML_TYPE_F16, shapes[k], 20, 0.1f, 3);
        static const function sqr = sqr_of, root = sqrt, logarithm = log, sine = sin, cosine = cos;
        static const function scale = scale_of, leaky = leaky_of;
        test_against(ctx, ggml_sqr(ctx, h), function_oracle, &sqr, "sqr");
        test_against(ctx, ggml_sqrt(ctx, x), function_oracle, &root, "sqrt");
        test_against(ctx, ggml_log(ctx, x), function_oracle, &logarithm, "log");
        test_against(ctx, ggml_sin(ctx, x), function_oracle, &sine, "sin");
        test_against(ctx, ggml_cos(ctx, h), function_oracle, &cosine, "cos");
        test_against(ctx, ggml_scale_bias(ctx, x, 1.5f, -0.25f), function_oracle, &scale, "scale");
        struct ggml_tensor *s = test_tensor(ctx, GGML_TYPE_F32, shapes[k], 21, -3, 3);
        test_against(ctx, ggml_leaky_relu(ctx, s, 0.1f, false), function_oracle, &leaky,
                     "leaky_relu");
        test_against(ctx, ggml_xielu(ctx, s, 0.8f, 0.4f, 0.5f, -1e-6f), xielu_oracle, NULL,
                     "xielu");
        ggml_free(ctx);
    }
}

// The oracle looks at a copy: the packed twin of a tensor with gaps.
static double clamp_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)y;
    return clamp_of(test_get(context, i[0], i[1], i[2], i[3]));
}

static void test_clamp(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(2);
    const struct extents shape = {{13, 4, 3, 2}};
    struct ggml_tensor *copy = test_tensor(ctx, GGML_TYPE_F32, shape, 30, -4, 4);
    struct ggml_tensor *x = test_gapped(ctx, GGML_TYPE_F32, shape, 30, -4, 4);
    test_against(ctx, ggml_clamp(ctx, x, -1, 2), clamp_oracle, copy, "clamp");
    struct ggml_tensor *odd = ggml_new_f32(ctx, NAN);
    assert_int_equal(test_compute(test_graph(ctx, ggml_clamp_inplace(ctx, odd, -1, 2)), 1),
                     GGML_STATUS_SUCCESS);
    assert_float_equal(ggml_get_f32_1d(odd, 0), 2, 0);
    ggml_free(ctx);
}

static void test_special_values(void **state) {
    (void)state;
    static const float special[] = {0.0f,   -0.0f,   INFINITY, -INFINITY, NAN,
                                    100.0f, -100.0f, 1e-38f,   88.8f,     -103.5f};
    static const enum ggml_unary_op ops[] = {GGML_UNARY_OP_EXP, GGML_UNARY_OP_SIGMOID,
                                             GGML_UNARY_OP_TANH, GGML_UNARY_OP_RELU,
                                             GGML_UNARY_OP_SGN};
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 10);
    memcpy(x->data, special, sizeof(special));
    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); ++k) {
        if (ops[k] == GGML_UNARY_OP_EXP) ggml_set_f32_1d(x, 8, 88.0f);
        test_against(ctx, ggml_unary(ctx, x, ops[k]), unary_oracle, &ops[k],
                     ggml_unary_op_name(ops[k]));
    }
    ggml_free(ctx);
}

// --- gated linear units ----------------------------------------------------------------

static double glu_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const bool swapped = *(const bool *)context;
    const struct ggml_tensor *a = y->src[0], *b = y->src[1] ? y->src[1] : a;
    const int64_t half = y->src[1] ? 0 : y->ne[0];
    const double x = test_get(a, i[0] + (swapped ? half : 0), i[1], i[2], i[3]);
    const double g = test_get(b, i[0] + (swapped ? 0 : half), i[1], i[2], i[3]);
    switch (ggml_get_glu_op(y)) {
    case GGML_GLU_OP_REGLU: return x > 0 ? x * g : 0;
    case GGML_GLU_OP_GEGLU: return gelu(x) * g;
    case GGML_GLU_OP_SWIGLU: return x * sigmoid(x) * g;
    case GGML_GLU_OP_GEGLU_ERF: return unary(GGML_UNARY_OP_GELU_ERF, x) * g;
    case GGML_GLU_OP_GEGLU_QUICK: return x * sigmoid(1.702 * x) * g;
    default: break;
    }
    const double limit = 3, xl = x > limit ? limit : x;
    const double gl = g > limit ? limit : g < -limit ? -limit : g;
    return ggml_get_glu_op(y) == GGML_GLU_OP_SWIGLU_OAI ? xl * sigmoid(1.5 * xl) * (gl + 1)
                                                        : xl * sigmoid(xl) * gl;
}

static void test_glu_family(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    static const bool no = false, yes = true;
    for (int op = 0; op < GGML_GLU_OP_COUNT; ++op) {
        if (op == GGML_GLU_OP_SWIGLU_OAI || op == GGML_GLU_OP_SWIGLU_CLAMP) continue;
        for (int k = 0; k < 3; ++k) {
            struct ggml_context *ctx = test_context(4);
            struct extents shape = shapes[(op + k) % N_SHAPES];
            struct ggml_tensor *b = test_tensor(ctx, types[k], shape, 41, -2, 2);
            struct ggml_tensor *a = test_tensor(ctx, types[k], shape, 40, -6, 6);
            test_against(ctx, ggml_glu_split(ctx, a, b, (enum ggml_glu_op)op), glu_oracle, &no,
                         "split");
            shape.ne[0] *= 2;
            struct ggml_tensor *c = test_tensor(ctx, types[k], shape, 42, -2, 2);
            test_against(ctx, ggml_glu(ctx, c, (enum ggml_glu_op)op, true), glu_oracle, &yes,
                         "swapped");
            test_against(ctx, ggml_glu(ctx, c, (enum ggml_glu_op)op, false), glu_oracle, &no,
                         "glu");
            ggml_free(ctx);
        }
    }
}

static void test_limited_swiglu(void **state) {
    (void)state;
    static const bool no = false;
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *a = test_tensor(ctx, GGML_TYPE_F32, shapes[2], 50, -6, 6);
    struct ggml_tensor *b = test_tensor(ctx, GGML_TYPE_F32, shapes[2], 51, -6, 6);
    test_against(ctx, ggml_swiglu_oai(ctx, a, b, 1.5f, 3.0f), glu_oracle, &no, "swiglu_oai");
    test_against(ctx, ggml_swiglu_clamp(ctx, a, b, 3.0f), glu_oracle, &no, "swiglu_clamp");
    ggml_free(ctx);
}

// Every pair of some numbers, in rows that vectors end within.
static void test_glu_of_special_values(void **state) {
    (void)state;
    static const float special[] = {-9.0f, -2.0f, -0.0f, 0.5f, 2.0f, 9.0f, INFINITY, NAN, 3.0f};
    static const bool no = false;
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 81);
    struct ggml_tensor *g = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 81);
    for (int i = 0; i < 81; ++i) {
        ggml_set_f32_1d(x, i, special[i / 9]);
        ggml_set_f32_1d(g, i, i % 9 == 0 ? -INFINITY : special[i % 9]);
    }
    test_against(ctx, ggml_swiglu_oai(ctx, x, g, 1.5f, 3.0f), glu_oracle, &no, "swiglu_oai");
    test_against(ctx, ggml_swiglu_clamp(ctx, x, g, 3.0f), glu_oracle, &no, "swiglu_clamp");
    test_against(ctx, ggml_reglu_split(ctx, x, g), glu_oracle, &no, "reglu");
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binary_types),
        cmocka_unit_test(test_binary_broadcasts_every_dimension),
        cmocka_unit_test(test_binary_strided_and_permuted),
        cmocka_unit_test(test_add_id),
        cmocka_unit_test(test_unary_family),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_clamp),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_glu_family),
        cmocka_unit_test(test_limited_swiglu),
        cmocka_unit_test(test_glu_of_special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
