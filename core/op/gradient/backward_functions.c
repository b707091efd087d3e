// SPDX-License-Identifier: MIT
// The slopes of functions of one number, and the gradients of gated linear units, from other ops.
#include "op/gradient/backward_functions.h"

#include <math.h>

#include "op/op_build.h"

typedef struct ggml_tensor *tensor_t;

#define SQRT_2_OVER_PI 0.79788456080286535588f
#define GELU_CUBE 0.044715f
#define GELU_QUICK_SLOPE 1.702f

// s (1 - s), of s = sigmoid(x)
static tensor_t sigmoid_slope(struct ggml_context *ctx, tensor_t s) {
    return ggml_mul(ctx, s, ggml_scale_bias(ctx, s, -1.0f, 1.0f));
}

// 1 - t^2, of t = tanh(x)
static tensor_t tanh_slope(struct ggml_context *ctx, tensor_t t) {
    return ggml_scale_bias(ctx, ggml_sqr(ctx, t), -1.0f, 1.0f);
}

// (1 + t + x t') / 2, t = tanh(c (x + 0.044715 x^3))
static tensor_t gelu_slope(struct ggml_context *ctx, tensor_t x) {
    const float c = SQRT_2_OVER_PI;
    tensor_t x2 = ggml_sqr(ctx, x);
    tensor_t inner = ggml_mul(ctx, x, ggml_scale_bias(ctx, x2, c * GELU_CUBE, c));
    tensor_t inner_slope = ggml_scale_bias(ctx, x2, 3.0f * c * GELU_CUBE, c);
    tensor_t t = ggml_tanh(ctx, inner);
    tensor_t rest = ggml_mul(ctx, ggml_mul(ctx, x, inner_slope), tanh_slope(ctx, t));
    return ggml_scale_bias(ctx, ggml_add(ctx, t, rest), 0.5f, 0.5f);
}

// P(x) + x p(x), of the normal distribution P and its density p. P is gelu_erf(x') / x', where x'
// is x, but at least 1e-6 from zero: P changes by less than 4e-7 on that way.
static tensor_t gelu_erf_slope(struct ggml_context *ctx, tensor_t x) {
    const float least = 1e-6f, density_at_0 = 0.39894228040143267794f;
    tensor_t sign = ggml_scale_bias(ctx, ggml_step(ctx, x), 2.0f, -1.0f);
    tensor_t size = ggml_relu(ctx, ggml_scale_bias(ctx, ggml_abs(ctx, x), 1.0f, -least));
    tensor_t apart = ggml_mul(ctx, sign, ggml_scale_bias(ctx, size, 1.0f, least));
    tensor_t p = ggml_div(ctx, ggml_gelu_erf(ctx, apart), apart);
    tensor_t density = ggml_exp(ctx, ggml_scale(ctx, ggml_sqr(ctx, x), -0.5f));
    return ggml_add(ctx, p, ggml_scale(ctx, ggml_mul(ctx, x, density), density_at_0));
}

// The slope of x sigmoid(k x): s + k x s (1 - s)
static tensor_t swish_slope(struct ggml_context *ctx, tensor_t x, float k) {
    tensor_t s = ggml_sigmoid(ctx, ggml_scale(ctx, x, k));
    tensor_t rest = ggml_mul(ctx, x, sigmoid_slope(ctx, s));
    return ggml_add(ctx, s, ggml_scale(ctx, rest, k));
}

// 1 where low < x < high, else 0
static tensor_t between(struct ggml_context *ctx, tensor_t x, float low, float high) {
    return ggml_mul(ctx, ggml_step(ctx, ggml_scale_bias(ctx, x, 1.0f, -low)),
                    ggml_step(ctx, ggml_scale_bias(ctx, x, -1.0f, high)));
}

// x > 0: 2 alpha_p x + beta, else alpha_n (exp(x) - 1) + beta. Both branches are computed from the
// positive and the negative part of x, each 0 where the other one applies, since there is no
// selecting operation.
static tensor_t xielu_slope(struct ggml_context *ctx, const struct ggml_tensor *node, tensor_t x) {
    const float alpha_n = ggml_get_op_params_f32(node, 1);
    const float alpha_p = ggml_get_op_params_f32(node, 2);
    const float beta = ggml_get_op_params_f32(node, 3);
    tensor_t positive = ggml_relu(ctx, x);
    tensor_t negative = ggml_expm1(ctx, ggml_sub(ctx, x, positive));
    return ggml_add(ctx, ggml_scale_bias(ctx, positive, 2.0f * alpha_p, beta),
                    ggml_scale(ctx, negative, alpha_n));
}

// Where the function's value appears in its own derivative (exp, tanh, sigmoid), the node's result
// is used instead of computing it again.
tensor_t backward_unary_slope(struct ggml_context *ctx, tensor_t node) {
    tensor_t x = node->src[0];
    switch (ggml_get_unary_op(node)) {
    case GGML_UNARY_OP_ABS: return ggml_sgn(ctx, x);
    case GGML_UNARY_OP_RELU: return ggml_step(ctx, x);
    case GGML_UNARY_OP_EXP: return node;
    case GGML_UNARY_OP_EXPM1: return ggml_exp(ctx, x);
    case GGML_UNARY_OP_SOFTPLUS: return ggml_sigmoid(ctx, x);
    case GGML_UNARY_OP_TANH: return tanh_slope(ctx, node);
    case GGML_UNARY_OP_SIGMOID: return sigmoid_slope(ctx, node);
    case GGML_UNARY_OP_GELU: return gelu_slope(ctx, x);
    case GGML_UNARY_OP_GELU_ERF: return gelu_erf_slope(ctx, x);
    case GGML_UNARY_OP_GELU_QUICK: return swish_slope(ctx, x, GELU_QUICK_SLOPE);
    case GGML_UNARY_OP_XIELU: return xielu_slope(ctx, node, x);
    default: return NULL;
    }
}

// --- gated linear units --------------------------------------------------------------------------

// The unit is f(x') g', where x' and g' are x and g within limits.
struct unit {
    tensor_t value; // f(x')
    tensor_t slope; // f'(x'), 0 where x is limited
    tensor_t gate;  // g'
    tensor_t open;  // 0 where g is limited; NULL: never
};

// A unit whose operands are used as they are: reglu, geglu and their relatives.
static struct unit unlimited(tensor_t value, tensor_t slope, tensor_t gate) {
    return (struct unit){value, slope, gate, NULL};
}

// f(x) = x sigmoid(k x) with x <= limit, and g clamped to [-limit, limit] plus `bias`: SwiGLU as in
// gpt-oss, whose gate is 1 + g. Clamps have slope 0 outside of their range, hence the 0/1 factors
// `below` and `open`.
static struct unit limited(struct ggml_context *ctx, const struct ggml_tensor *node, float k,
                           float limit, float bias) {
    tensor_t x = node->src[0], g = node->src[1];
    tensor_t low = ggml_clamp(ctx, ggml_dup(ctx, x), -INFINITY, limit);
    tensor_t value = ggml_mul(ctx, low, ggml_sigmoid(ctx, ggml_scale(ctx, low, k)));
    tensor_t below = ggml_step(ctx, ggml_scale_bias(ctx, x, -1.0f, limit));
    tensor_t gate = ggml_clamp(ctx, ggml_dup(ctx, g), -limit, limit);
    return (struct unit){value, ggml_mul(ctx, below, swish_slope(ctx, low, k)),
                         ggml_scale_bias(ctx, gate, 1.0f, bias), between(ctx, g, -limit, limit)};
}

// The unit of a GLU node with a derivative here; members NULL for any other, SWIGLU included, which
// has an operation of its own.
static struct unit unit_of(struct ggml_context *ctx, const struct ggml_tensor *node) {
    tensor_t x = node->src[0], g = node->src[1];
    const float alpha = ggml_get_op_params_f32(node, 2);
    const float limit = ggml_get_op_params_f32(node, 3);
    switch (ggml_get_glu_op(node)) {
    case GGML_GLU_OP_REGLU: return unlimited(ggml_relu(ctx, x), ggml_step(ctx, x), g);
    case GGML_GLU_OP_GEGLU: return unlimited(ggml_gelu(ctx, x), gelu_slope(ctx, x), g);
    case GGML_GLU_OP_GEGLU_ERF: return unlimited(ggml_gelu_erf(ctx, x), gelu_erf_slope(ctx, x), g);
    case GGML_GLU_OP_GEGLU_QUICK:
        return unlimited(ggml_gelu_quick(ctx, x), swish_slope(ctx, x, GELU_QUICK_SLOPE), g);
    case GGML_GLU_OP_SWIGLU_OAI: return limited(ctx, node, alpha, limit, 1.0f);
    case GGML_GLU_OP_SWIGLU_CLAMP: return limited(ctx, node, 1.0f, limit, 0.0f);
    default: return (struct unit){NULL, NULL, NULL, NULL};
    }
}

// y = f(x) g, so that dx = dy g f'(x) and dg = dy f(x). The form with both halves in one tensor
// would need strided writes of its gradient, which no operation has.
void backward_rule_glu(struct backward *pass, tensor_t node, tensor_t grad) {
    struct ggml_context *ctx = pass->ctx;
    tensor_t x = node->src[0], g = node->src[1];
    if (!g) {
        backward_fail(pass, node, "only the form of two tensors (ggml_glu_split) has a gradient");
        return;
    }
    if (ggml_get_glu_op(node) == GGML_GLU_OP_SWIGLU) { // has an op of its own
        if (backward_wants(pass, x))
            backward_give(pass, x, ggml_silu_back(ctx, ggml_mul(ctx, grad, g), x));
        if (backward_wants(pass, g)) backward_give(pass, g, ggml_mul(ctx, grad, ggml_silu(ctx, x)));
        return;
    }
    const struct unit unit = unit_of(ctx, node);
    if (!unit.slope) {
        backward_fail(pass, node, "this unit has no gradient here");
        return;
    }
    if (backward_wants(pass, x))
        backward_give(pass, x, ggml_mul(ctx, ggml_mul(ctx, grad, unit.gate), unit.slope));
    if (backward_wants(pass, g)) {
        tensor_t slope = ggml_mul(ctx, grad, unit.value);
        backward_give(pass, g, unit.open ? ggml_mul(ctx, slope, unit.open) : slope);
    }
}
