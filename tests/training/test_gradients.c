// SPDX-License-Identifier: MIT
// The gradient of every operation that has one, against central differences: for y = f(inputs) and
// random weights w, d(sum w y)/dx is computed by the graph and by moving each x up and down.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/random.h"
#include "ggml-backend.h"
#include "ggml-host.h"
#include "training/cpu_stream.h"

enum { MAX_INPUTS = 3, SEED = 20240607, CONTEXT_SIZE = 16 << 20 };

// Error of the difference: the third derivative over 6 times the step squared, plus rounding of y
// (1e-7 of its size, divided by the step). Both stay below 1e-3 for values around 1.
static const float STEP = 1e-2f;
static const double TOLERANCE = 4e-3;

typedef struct ggml_tensor *tensor_t;
typedef tensor_t (*build_fn)(struct ggml_context *ctx, tensor_t *x);

enum values {
    NORMAL,
    POSITIVE, // 0.5 .. 2
    AWAY,     // 0.2 .. 2, either sign: away from kinks
    ZERO,
    OFF_GRID,  // -1.95, -1.85 .. 1.95, 0.05 away from multiples of 0.1
    SPACED,    // no two within 4 steps, for maxima
    CONSTANT,  // NORMAL, and no gradient is asked for
    SHARES,    // rows of 5 that sum to 1, no gradient
    FIRST_TWO, // row numbers below 2, no gradient
};

struct input {
    enum values values;
    int64_t ne[4];
};

struct gradient_case {
    const char *name;
    build_fn build;
    struct input inputs[MAX_INPUTS];
};

// --- the functions -------------------------------------------------------------------------------

#define UNARY(name)                                                                                \
    static tensor_t build_##name(struct ggml_context *ctx, tensor_t *x) {                          \
        return ggml_##name(ctx, x[0]);                                                             \
    }
#define BINARY(name)                                                                               \
    static tensor_t build_##name(struct ggml_context *ctx, tensor_t *x) {                          \
        return ggml_##name(ctx, x[0], x[1]);                                                       \
    }
UNARY(dup)
UNARY(sqr)
UNARY(sqrt)
UNARY(log)
UNARY(sin)
UNARY(cos)
UNARY(sum)
UNARY(sum_rows)
UNARY(mean)
UNARY(abs)
UNARY(neg)
UNARY(relu)
UNARY(silu)
UNARY(exp)
UNARY(expm1)
UNARY(softplus)
UNARY(tanh)
UNARY(sigmoid)
UNARY(gelu)
UNARY(gelu_erf)
UNARY(gelu_quick)
UNARY(cumsum)
UNARY(diag)
UNARY(soft_max)
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(mul_mat)
BINARY(get_rows)
BINARY(swiglu_split)
BINARY(reglu_split)
BINARY(geglu_split)
BINARY(geglu_erf_split)
BINARY(geglu_quick_split)
BINARY(cross_entropy_loss)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
BINARY(add1)
#pragma GCC diagnostic pop

static tensor_t build_scale(struct ggml_context *ctx, tensor_t *x) {
    return ggml_scale_bias(ctx, x[0], -1.5f, 3.0f);
}

static tensor_t build_xielu(struct ggml_context *ctx, tensor_t *x) {
    return ggml_xielu(ctx, x[0], 0.8f, 0.6f, 0.5f, -1e-6f);
}

static tensor_t build_swiglu_oai(struct ggml_context *ctx, tensor_t *x) {
    return ggml_swiglu_oai(ctx, x[0], x[1], 1.702f, 1.1f);
}

static tensor_t build_swiglu_clamp(struct ggml_context *ctx, tensor_t *x) {
    return ggml_swiglu_clamp(ctx, x[0], x[1], 1.1f);
}

static tensor_t build_tri(struct ggml_context *ctx, tensor_t *x) {
    return ggml_tri(ctx, x[0], GGML_TRI_TYPE_LOWER_DIAG);
}

static tensor_t build_pool_1d(struct ggml_context *ctx, tensor_t *x) {
    return ggml_pool_1d(ctx, x[0], GGML_OP_POOL_AVG, 3, 2, 0);
}

static tensor_t build_pool_1d_max(struct ggml_context *ctx, tensor_t *x) {
    return ggml_pool_1d(ctx, x[0], GGML_OP_POOL_MAX, 3, 2, 1);
}

// Rounding and filling have no slope, so only the other factor's counts.
static tensor_t build_rounded(struct ggml_context *ctx, tensor_t *x) {
    tensor_t steps = ggml_add(ctx, ggml_floor(ctx, x[0]), ggml_ceil(ctx, x[0]));
    steps = ggml_add(ctx, steps, ggml_add(ctx, ggml_round(ctx, x[0]), ggml_trunc(ctx, x[0])));
    return ggml_mul(ctx, x[0], ggml_add(ctx, steps, ggml_fill(ctx, x[0], 2.0f)));
}

static tensor_t build_sgn_and_more(struct ggml_context *ctx, tensor_t *x) {
    return ggml_mul(ctx, ggml_sgn(ctx, x[0]), ggml_mul(ctx, ggml_step(ctx, x[0]), x[0]));
}

static tensor_t build_acc(struct ggml_context *ctx, tensor_t *x) {
    return ggml_acc(ctx, x[0], x[1], x[0]->nb[1], x[0]->nb[2], x[0]->nb[3], x[0]->nb[1] + 4);
}

static tensor_t build_set(struct ggml_context *ctx, tensor_t *x) {
    return ggml_set(ctx, x[0], x[1], x[0]->nb[1], x[0]->nb[2], x[0]->nb[3], x[0]->nb[1] + 4);
}

static tensor_t build_cont(struct ggml_context *ctx, tensor_t *x) {
    return ggml_cont(ctx, ggml_transpose(ctx, x[0]));
}

static tensor_t build_reshape(struct ggml_context *ctx, tensor_t *x) {
    return ggml_sqr(ctx, ggml_reshape_2d(ctx, x[0], x[0]->ne[1], x[0]->ne[0]));
}

static tensor_t build_cpy(struct ggml_context *ctx, tensor_t *x) {
    return ggml_cpy(ctx, x[0], ggml_new_tensor_2d(ctx, GGML_TYPE_F32, x[0]->ne[1], x[0]->ne[0]));
}

static tensor_t build_cast_and_back(struct ggml_context *ctx, tensor_t *x) {
    return ggml_cast(ctx, ggml_cast(ctx, x[0], GGML_TYPE_F32), GGML_TYPE_F32);
}

static tensor_t build_view(struct ggml_context *ctx, tensor_t *x) {
    return ggml_sqr(ctx,
                    ggml_cont(ctx, ggml_view_2d(ctx, x[0], 2, 2, x[0]->nb[1], x[0]->nb[1] + 4)));
}

// Two overlapping views, so that regions are added to one gradient.
static tensor_t build_views(struct ggml_context *ctx, tensor_t *x) {
    tensor_t low = ggml_cont(ctx, ggml_view_1d(ctx, x[0], 8, 0));
    tensor_t high = ggml_cont(ctx, ggml_view_1d(ctx, x[0], 8, 4 * sizeof(float)));
    return ggml_mul(ctx, low, ggml_add(ctx, high, ggml_view_1d(ctx, x[0], 8, 8)));
}

static tensor_t build_permute(struct ggml_context *ctx, tensor_t *x) {
    return ggml_sqr(ctx, ggml_cont(ctx, ggml_permute(ctx, x[0], 2, 0, 3, 1)));
}

// Functions whose gradient arrives permuted, so that the elements of its rows lie apart.
static tensor_t build_before_transpose(struct ggml_context *ctx, tensor_t *x) {
    tensor_t y = ggml_div(ctx, ggml_mul(ctx, ggml_sqr(ctx, ggml_relu(ctx, x[0])), x[1]), x[1]);
    return ggml_cont(ctx, ggml_transpose(ctx, ggml_add(ctx, y, ggml_sin(ctx, x[0]))));
}

// Both parts of the gradient are permuted.
static tensor_t build_two_permutations(struct ggml_context *ctx, tensor_t *x) {
    tensor_t a = ggml_cont(ctx, ggml_permute(ctx, x[0], 2, 0, 1, 3));
    tensor_t b = ggml_cont(ctx, ggml_permute(ctx, x[0], 1, 2, 0, 3));
    return ggml_mul(ctx, ggml_reshape_1d(ctx, a, 24), ggml_reshape_1d(ctx, b, 24));
}

static tensor_t build_repeat(struct ggml_context *ctx, tensor_t *x) {
    return ggml_repeat_4d(ctx, x[0], 2 * x[0]->ne[0], 3 * x[0]->ne[1], x[0]->ne[2], 2);
}

static tensor_t build_repeat_back(struct ggml_context *ctx, tensor_t *x) {
    return ggml_repeat_back(ctx, x[0], ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 2, 1));
}

static tensor_t build_rms_norm(struct ggml_context *ctx, tensor_t *x) {
    return ggml_rms_norm(ctx, x[0], 1e-2f);
}

static tensor_t build_attention(struct ggml_context *ctx, tensor_t *x) {
    tensor_t q = ggml_permute(ctx, x[0], 0, 2, 1, 3);
    tensor_t k = ggml_permute(ctx, x[1], 0, 2, 1, 3);
    tensor_t scores = ggml_soft_max_ext(ctx, ggml_mul_mat(ctx, k, q), x[2], 0.7f, 0.0f);
    return scores;
}

static tensor_t build_alibi(struct ggml_context *ctx, tensor_t *x) {
    return ggml_soft_max_ext(ctx, x[0], x[1], 0.5f, 8.0f);
}

static tensor_t build_diag_mask(struct ggml_context *ctx, tensor_t *x) {
    return ggml_soft_max(ctx, ggml_diag_mask_inf(ctx, ggml_diag_mask_zero(ctx, x[0], 2), 1));
}

static tensor_t rope(struct ggml_context *ctx, tensor_t *x, int mode) {
    return ggml_rope_ext(ctx, x[0], x[1], x[2], 4, mode, 100, 50.0f, 0.9f, 0.5f, 1.2f, 32.0f, 1.0f);
}

static tensor_t build_rope(struct ggml_context *ctx, tensor_t *x) {
    return rope(ctx, x, GGML_ROPE_TYPE_NORMAL);
}

static tensor_t build_rope_neox(struct ggml_context *ctx, tensor_t *x) {
    return rope(ctx, x, GGML_ROPE_TYPE_NEOX);
}

static tensor_t build_rope_offset(struct ggml_context *ctx, tensor_t *x) {
    return ggml_rope_set_offset(rope(ctx, x, GGML_ROPE_TYPE_NEOX), 2);
}

static tensor_t build_rope_multi(struct ggml_context *ctx, tensor_t *x) {
    int sections[4] = {1, 1, 1, 0};
    tensor_t p = ggml_repeat_4d(ctx, x[1], 4 * x[1]->ne[0], 1, 1, 1);
    return ggml_rope_multi(ctx, x[0], p, NULL, 6, sections, GGML_ROPE_TYPE_MROPE, 100, 50.0f, 1.0f,
                           0.0f, 1.0f, 32.0f, 1.0f);
}

static tensor_t build_pool_avg(struct ggml_context *ctx, tensor_t *x) {
    return ggml_pool_2d(ctx, x[0], GGML_OP_POOL_AVG, 2, 3, 2, 1, 1, 1);
}

static tensor_t build_pool_max(struct ggml_context *ctx, tensor_t *x) {
    return ggml_pool_2d(ctx, x[0], GGML_OP_POOL_MAX, 2, 2, 2, 2, 0, 0);
}

static tensor_t build_conv_2d(struct ggml_context *ctx, tensor_t *x) {
    tensor_t columns = ggml_im2col(ctx, x[0], x[1], 2, 1, 1, 1, 1, 2, true, GGML_TYPE_F32);
    const int64_t n = columns->ne[1] * columns->ne[2] * columns->ne[3];
    return ggml_mul_mat(ctx, ggml_reshape_2d(ctx, columns, columns->ne[0], n),
                        ggml_reshape_2d(ctx, x[0], columns->ne[0], x[0]->ne[3]));
}

// One tensor in many places: gradients add up.
static tensor_t build_shared(struct ggml_context *ctx, tensor_t *x) {
    return ggml_add(ctx, ggml_mul(ctx, x[0], x[0]),
                    ggml_mul(ctx, ggml_add(ctx, x[0], x[1]), ggml_sub(ctx, x[1], x[0])));
}

static const struct gradient_case cases[] = {
    {"dup", build_dup, {{NORMAL, {3, 4, 2, 1}}}},
    {"add", build_add, {{NORMAL, {3, 4, 2, 2}}, {NORMAL, {3, 4, 2, 2}}}},
    {"add, broadcast", build_add, {{NORMAL, {3, 4, 2, 2}}, {NORMAL, {3, 2, 1, 1}}}},
    {"add1", build_add1, {{NORMAL, {3, 4, 2, 1}}, {NORMAL, {1, 1, 1, 1}}}},
    {"acc", build_acc, {{NORMAL, {5, 4, 3, 1}}, {NORMAL, {3, 2, 2, 1}}}},
    {"sub", build_sub, {{NORMAL, {3, 4, 2, 2}}, {NORMAL, {3, 4, 2, 2}}}},
    {"sub, broadcast", build_sub, {{NORMAL, {4, 4, 2, 2}}, {NORMAL, {1, 2, 2, 1}}}},
    {"mul", build_mul, {{NORMAL, {3, 4, 2, 2}}, {NORMAL, {3, 4, 2, 2}}}},
    {"mul, broadcast", build_mul, {{NORMAL, {4, 4, 2, 2}}, {NORMAL, {2, 1, 2, 1}}}},
    {"div", build_div, {{NORMAL, {3, 4, 2, 2}}, {POSITIVE, {3, 4, 2, 2}}}},
    {"div, broadcast", build_div, {{NORMAL, {4, 4, 2, 2}}, {POSITIVE, {4, 2, 1, 2}}}},
    {"sqr", build_sqr, {{NORMAL, {5, 3, 1, 1}}}},
    {"sqrt", build_sqrt, {{POSITIVE, {5, 3, 1, 1}}}},
    {"log", build_log, {{POSITIVE, {5, 3, 1, 1}}}},
    {"sin", build_sin, {{NORMAL, {5, 3, 1, 1}}}},
    {"cos", build_cos, {{NORMAL, {5, 3, 1, 1}}}},
    {"sum", build_sum, {{NORMAL, {5, 3, 2, 2}}}},
    {"sum_rows", build_sum_rows, {{NORMAL, {5, 3, 2, 2}}}},
    {"mean", build_mean, {{NORMAL, {5, 3, 2, 2}}}},
    {"repeat", build_repeat, {{NORMAL, {3, 2, 2, 1}}}},
    {"repeat_back", build_repeat_back, {{NORMAL, {4, 3, 2, 2}}}},
    {"rms_norm", build_rms_norm, {{NORMAL, {7, 3, 2, 1}}}},
    {"mul_mat", build_mul_mat, {{NORMAL, {5, 3, 1, 1}}, {NORMAL, {5, 4, 1, 1}}}},
    {"mul_mat, batches", build_mul_mat, {{NORMAL, {5, 3, 2, 3}}, {NORMAL, {5, 4, 2, 3}}}},
    {"mul_mat, broadcast", build_mul_mat, {{NORMAL, {5, 3, 2, 2}}, {NORMAL, {5, 4, 6, 4}}}},
    {"mul_mat, broadcast 2", build_mul_mat, {{NORMAL, {5, 3, 2, 1}}, {NORMAL, {5, 4, 4, 1}}}},
    {"mul_mat, broadcast 3", build_mul_mat, {{NORMAL, {5, 3, 2, 1}}, {NORMAL, {5, 4, 2, 3}}}},
    {"scale", build_scale, {{NORMAL, {5, 3, 1, 1}}}},
    {"set", build_set, {{NORMAL, {5, 4, 3, 1}}, {NORMAL, {3, 2, 2, 1}}}},
    {"cpy", build_cpy, {{NORMAL, {3, 4, 1, 1}}}},
    {"cast", build_cast_and_back, {{NORMAL, {3, 4, 1, 1}}}},
    {"cont", build_cont, {{NORMAL, {3, 4, 2, 1}}}},
    {"reshape", build_reshape, {{NORMAL, {3, 4, 1, 1}}}},
    {"view", build_view, {{NORMAL, {4, 4, 1, 1}}}},
    {"views that overlap", build_views, {{NORMAL, {12, 1, 1, 1}}}},
    {"permute", build_permute, {{NORMAL, {2, 3, 4, 2}}}},
    {"before a transposition",
     build_before_transpose,
     {{AWAY, {3, 4, 2, 1}}, {POSITIVE, {3, 4, 2, 1}}}},
    {"two permutations", build_two_permutations, {{NORMAL, {2, 3, 4, 1}}}},
    {"get_rows", build_get_rows, {{NORMAL, {4, 3, 1, 1}}, {FIRST_TWO, {5, 1, 1, 1}}}},
    {"diag_mask", build_diag_mask, {{NORMAL, {5, 4, 2, 1}}}},
    {"soft_max", build_soft_max, {{NORMAL, {6, 3, 2, 1}}}},
    {"soft_max, attention",
     build_attention,
     {{NORMAL, {4, 2, 3, 1}}, {NORMAL, {4, 2, 5, 1}}, {CONSTANT, {5, 3, 1, 1}}}},
    {"soft_max, alibi", build_alibi, {{NORMAL, {5, 3, 2, 1}}, {CONSTANT, {5, 3, 1, 1}}}},
    {"rope",
     build_rope,
     {{NORMAL, {6, 2, 3, 1}}, {FIRST_TWO, {3, 1, 1, 1}}, {CONSTANT, {2, 1, 1, 1}}}},
    {"rope, neox",
     build_rope_neox,
     {{NORMAL, {6, 2, 3, 1}}, {FIRST_TWO, {3, 1, 1, 1}}, {CONSTANT, {2, 1, 1, 1}}}},
    {"rope, offset",
     build_rope_offset,
     {{NORMAL, {6, 2, 3, 1}}, {FIRST_TWO, {3, 1, 1, 1}}, {CONSTANT, {2, 1, 1, 1}}}},
    {"rope, multi", build_rope_multi, {{NORMAL, {6, 2, 3, 1}}, {FIRST_TWO, {3, 1, 1, 1}}}},
    {"im2col", build_conv_2d, {{NORMAL, {3, 2, 2, 2}}, {NORMAL, {6, 5, 2, 2}}}},
    {"pool_2d, mean", build_pool_avg, {{NORMAL, {6, 5, 2, 1}}}},
    {"pool_2d, max", build_pool_max, {{SPACED, {6, 6, 2, 1}}}},
    {"abs", build_abs, {{AWAY, {5, 3, 1, 1}}}},
    {"sgn and step", build_sgn_and_more, {{AWAY, {5, 3, 1, 1}}}},
    {"neg", build_neg, {{NORMAL, {5, 3, 1, 1}}}},
    {"relu", build_relu, {{AWAY, {5, 3, 1, 1}}}},
    {"silu", build_silu, {{NORMAL, {5, 3, 1, 1}}}},
    {"exp", build_exp, {{NORMAL, {5, 3, 1, 1}}}},
    {"expm1", build_expm1, {{NORMAL, {5, 3, 1, 1}}}},
    {"softplus", build_softplus, {{NORMAL, {5, 3, 1, 1}}}},
    {"tanh", build_tanh, {{NORMAL, {5, 3, 1, 1}}}},
    {"sigmoid", build_sigmoid, {{NORMAL, {5, 3, 1, 1}}}},
    {"gelu", build_gelu, {{NORMAL, {5, 30, 1, 1}}}},
    {"gelu_erf", build_gelu_erf, {{NORMAL, {5, 30, 1, 1}}}},
    {"gelu_erf at 0", build_gelu_erf, {{ZERO, {5, 3, 1, 1}}}},
    {"gelu_quick", build_gelu_quick, {{NORMAL, {5, 30, 1, 1}}}},
    {"xielu", build_xielu, {{AWAY, {5, 30, 1, 1}}}},
    {"rounding", build_rounded, {{OFF_GRID, {5, 30, 1, 1}}}},
    {"cumsum", build_cumsum, {{NORMAL, {5, 3, 2, 1}}}},
    {"diag", build_diag, {{NORMAL, {5, 1, 2, 3}}}},
    {"tri", build_tri, {{NORMAL, {5, 5, 2, 3}}}},
    {"pool_1d", build_pool_1d, {{NORMAL, {8, 3, 2, 1}}}},
    {"pool_1d, max", build_pool_1d_max, {{SPACED, {8, 3, 2, 1}}}},
    {"reglu", build_reglu_split, {{AWAY, {5, 3, 2, 1}}, {NORMAL, {5, 3, 2, 1}}}},
    {"geglu", build_geglu_split, {{NORMAL, {5, 3, 2, 1}}, {NORMAL, {5, 3, 2, 1}}}},
    {"geglu_erf", build_geglu_erf_split, {{NORMAL, {5, 3, 2, 1}}, {NORMAL, {5, 3, 2, 1}}}},
    {"geglu_quick", build_geglu_quick_split, {{NORMAL, {5, 3, 2, 1}}, {NORMAL, {5, 3, 2, 1}}}},
    {"swiglu_oai", build_swiglu_oai, {{OFF_GRID, {5, 9, 2, 1}}, {OFF_GRID, {5, 9, 2, 1}}}},
    {"swiglu_clamp", build_swiglu_clamp, {{OFF_GRID, {5, 9, 2, 1}}, {OFF_GRID, {5, 9, 2, 1}}}},
    {"swiglu", build_swiglu_split, {{NORMAL, {5, 3, 2, 1}}, {NORMAL, {5, 3, 2, 1}}}},
    {"cross_entropy_loss",
     build_cross_entropy_loss,
     {{NORMAL, {5, 4, 1, 1}}, {SHARES, {5, 4, 1, 1}}}},
    {"shared", build_shared, {{NORMAL, {5, 3, 1, 1}}, {NORMAL, {5, 3, 1, 1}}}},
};

// --- the check -----------------------------------------------------------------------------------

static float any_value(struct test_random *random, enum values values, int64_t i) {
    const float uniform = (float)random_below(random, 1 << 20) / (1 << 20);
    switch (values) {
    case POSITIVE: return 0.5f + 1.5f * uniform;
    case AWAY: return (0.2f + 1.8f * uniform) * (random_below(random, 2) ? 1.0f : -1.0f);
    case ZERO: return 0.0f;
    case OFF_GRID: return 0.1f * (float)random_below(random, 40) - 1.95f;
    case SHARES: return (float[]){0.1f, 0.2f, 0.3f, 0.15f, 0.25f}[i % 5];
    case SPACED: return (float)((i * 37) % 101) * 4.0f * STEP;
    default: return random_normal(random);
    }
}

static tensor_t new_input(struct ggml_context *ctx, const struct input *input,
                          struct test_random *random) {
    const bool is_index = input->values == FIRST_TWO;
    tensor_t x = ggml_new_tensor(ctx, is_index ? GGML_TYPE_I32 : GGML_TYPE_F32, 4, input->ne);
    for (int64_t i = 0; i < ggml_nelements(x); ++i) {
        if (is_index) {
            ((int32_t *)x->data)[i] = (int32_t)random_below(random, 2);
        } else {
            ((float *)x->data)[i] = any_value(random, input->values, i);
        }
    }
    if (input->values < CONSTANT) ggml_set_param(x);
    return x;
}

static void compute(struct ggml_cgraph *graph) {
    if (ggml_graph_error(graph)) fail_msg("%s", ggml_graph_error(graph));
    if (ggml_backend_graph_compute(cpu, graph) != GGML_STATUS_SUCCESS) {
        fail_msg("%s", ggml_last_error());
    }
}

static double weighted_sum(struct ggml_cgraph *graph, const struct ggml_tensor *y,
                           const struct ggml_tensor *w) {
    double sum = 0.0;
    compute(graph);
    for (int64_t i = 0; i < ggml_nelements(y); ++i) {
        sum += (double)((const float *)y->data)[i] * ((const float *)w->data)[i];
    }
    return sum;
}

static void check_input(const struct gradient_case *c, int which, struct ggml_cgraph *forward,
                        const tensor_t *tensors, const struct ggml_tensor *grad) {
    float *x = tensors[which]->data;
    const float *g = grad->data;
    assert_int_equal(grad->type, GGML_TYPE_F32);
    for (int64_t i = 0; i < ggml_nelements(grad); ++i) {
        const float kept = x[i];
        x[i] = kept + STEP;
        const double up = weighted_sum(forward, tensors[MAX_INPUTS], tensors[MAX_INPUTS + 1]);
        x[i] = kept - STEP;
        const double down = weighted_sum(forward, tensors[MAX_INPUTS], tensors[MAX_INPUTS + 1]);
        x[i] = kept;
        const double expected = (up - down) / (2.0 * (double)STEP);
        if (!(fabs((double)g[i] - expected) <= TOLERANCE * (1.0 + fabs(expected)))) {
            fail_msg("%s: input %d, element %lld: gradient %g, difference %g", c->name, which,
                     (long long)i, (double)g[i], expected);
        }
    }
}

static void check_case(const struct gradient_case *c, bool with_accumulators) {
    struct test_random random = {SEED};
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = CONTEXT_SIZE});
    tensor_t tensors[MAX_INPUTS + 2] = {NULL};
    for (int i = 0; i < MAX_INPUTS && c->inputs[i].ne[0] > 0; ++i) {
        tensors[i] = new_input(ctx, &c->inputs[i], &random);
    }
    tensor_t y = c->build(ctx, tensors);
    if (ggml_tensor_is_error(y)) fail_msg("%s: %s", c->name, ggml_tensor_error(y));
    const struct input weights = {CONSTANT, {y->ne[0], y->ne[1], y->ne[2], y->ne[3]}};
    tensors[MAX_INPUTS] = y;
    tensors[MAX_INPUTS + 1] = new_input(ctx, &weights, &random);
    tensor_t loss = ggml_sum(ctx, ggml_mul(ctx, y, tensors[MAX_INPUTS + 1]));
    ggml_set_loss(loss);

    struct ggml_cgraph *forward = ggml_new_graph_custom(ctx, 64, false);
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 512, true);
    tensor_t accumulators[64] = {NULL};
    ggml_build_forward_expand(forward, y);
    ggml_build_forward_expand(graph, loss);
    for (int i = 0; with_accumulators && i < ggml_graph_n_nodes(graph); ++i) {
        tensor_t node = ggml_graph_node(graph, i);
        if (node->flags & GGML_TENSOR_FLAG_PARAM) {
            accumulators[i] = ggml_new_tensor(ctx, GGML_TYPE_F32, 4, node->ne);
        }
    }
    ggml_build_backward_expand(ctx, graph, with_accumulators ? accumulators : NULL);
    ggml_graph_reset(graph);
    compute(graph);
    for (int i = 0; i < MAX_INPUTS && tensors[i]; ++i) {
        if (!(tensors[i]->flags & GGML_TENSOR_FLAG_PARAM)) continue;
        struct ggml_cgraph *packing = ggml_new_graph_custom(ctx, 512, false);
        tensor_t grad = ggml_graph_get_grad(graph, tensors[i]);
        if (!grad) fail_msg("%s: input %d has no gradient", c->name, i);
        tensor_t packed = ggml_new_tensor(ctx, GGML_TYPE_F32, 4, grad->ne);
        ggml_graph_add_node(packing, ggml_cpy(ctx, grad, packed));
        ggml_graph_node(packing, 0)->flags |= GGML_TENSOR_FLAG_COMPUTE;
        compute(packing);
        check_input(c, i, forward, tensors, packed);
    }
    ggml_free(ctx);
}

static void test_gradients_equal_differences(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        check_case(&cases[i], false);
    }
}

static void test_gradients_in_accumulators(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        check_case(&cases[i], true);
    }
}

// Without a reset in between, accumulators hold the sum over the evaluations.
static void test_accumulators_add_up(void **state) {
    (void)state;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = CONTEXT_SIZE});
    tensor_t x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 2);
    ggml_set_param(x);
    tensor_t loss = ggml_sum(ctx, ggml_sqr(ctx, x));
    ggml_set_loss(loss);
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 64, true);
    ggml_build_forward_expand(graph, loss);
    tensor_t accumulators[8] = {NULL};
    assert_ptr_equal(ggml_graph_node(graph, 0), x);
    accumulators[0] = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 2);
    ggml_build_backward_expand(ctx, graph, accumulators);
    ((float *)x->data)[0] = 3.0f;
    ((float *)x->data)[1] = -1.0f;
    ggml_graph_reset(graph);
    for (int i = 0; i < 3; ++i) {
        compute(graph);
    }
    assert_ptr_equal(ggml_graph_get_grad_acc(graph, x), accumulators[0]);
    assert_true(((float *)accumulators[0]->data)[0] == 18.0f);
    assert_true(((float *)accumulators[0]->data)[1] == -6.0f);
    ggml_graph_reset(graph);
    assert_true(((float *)accumulators[0]->data)[0] == 0.0f);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_equal_differences),
        cmocka_unit_test(test_gradients_in_accumulators),
        cmocka_unit_test(test_accumulators_add_up),
    };
    return cmocka_run_group_tests(tests, cpu_stream_open, cpu_stream_close);
}
