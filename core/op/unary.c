// SPDX-License-Identifier: MIT
// Functions of one element: GGML_OP_UNARY with its named builders, and the ops that predate it.
#include <math.h>

#include "op/op_rules.h"

#define DEDICATED(name, NAME)                                                                      \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a) {             \
        return op_build(&(struct op_call){OP(ctx, NAME), .src = {a}});                             \
    }                                                                                              \
    struct ggml_tensor *ggml_##name##_inplace(struct ggml_context *ctx, struct ggml_tensor *a) {   \
        return op_build_inplace(&(struct op_call){OP(ctx, NAME), .src = {a}});                     \
    }
DEDICATED(sqr, SQR)
DEDICATED(sqrt, SQRT)
DEDICATED(log, LOG)
DEDICATED(sin, SIN)
DEDICATED(cos, COS)

// Rows may lie apart: kernels compute row by row.
bool op_shape_unary(struct op_call *call) {
    return op_need_range(call, "op", call->params[0], 0, GGML_UNARY_OP_COUNT - 1) &&
           op_need_contiguous_rows(call, 0) && op_set_ne_as(call, call->src[0]);
}

struct ggml_tensor *ggml_unary(struct ggml_context *ctx, struct ggml_tensor *a,
                               enum ggml_unary_op op) {
    return op_build(&(struct op_call){OP(ctx, UNARY), .src = {a}, .params = {(int32_t)op}});
}

struct ggml_tensor *ggml_unary_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                       enum ggml_unary_op op) {
    return op_build_inplace(&(struct op_call){OP(ctx, UNARY), .src = {a}, .params = {(int32_t)op}});
}

#define UNARY(name, NAME)                                                                          \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a) {             \
        return op_build(                                                                           \
            &(struct op_call){OP(ctx, UNARY), .src = {a}, .params = {GGML_UNARY_OP_##NAME}});      \
    }
#define UNARY_INPLACE(name, NAME)                                                                  \
    struct ggml_tensor *ggml_##name##_inplace(struct ggml_context *ctx, struct ggml_tensor *a) {   \
        return op_build_inplace(                                                                   \
            &(struct op_call){OP(ctx, UNARY), .src = {a}, .params = {GGML_UNARY_OP_##NAME}});      \
    }
#define UNARY_PAIR(name, NAME) UNARY(name, NAME) UNARY_INPLACE(name, NAME)
UNARY_PAIR(abs, ABS)
UNARY_PAIR(sgn, SGN)
UNARY_PAIR(neg, NEG)
UNARY_PAIR(step, STEP)
UNARY_PAIR(tanh, TANH)
UNARY_PAIR(elu, ELU)
UNARY_PAIR(relu, RELU)
UNARY_PAIR(sigmoid, SIGMOID)
UNARY_PAIR(gelu, GELU)
UNARY_PAIR(gelu_erf, GELU_ERF)
UNARY_PAIR(gelu_quick, GELU_QUICK)
UNARY_PAIR(silu, SILU)
UNARY_PAIR(exp, EXP)
UNARY_PAIR(expm1, EXPM1)
UNARY_PAIR(softplus, SOFTPLUS)
UNARY_PAIR(floor, FLOOR)
UNARY_PAIR(ceil, CEIL)
UNARY_PAIR(round, ROUND)
UNARY_PAIR(trunc, TRUNC)
UNARY(hardswish, HARDSWISH)
UNARY(hardsigmoid, HARDSIGMOID)

// log(1 + e^x), which is x for large x in F32.
static float softplus(float x) {
    return x > 20.0f ? x : logf(1.0f + expf(x));
}

// The parameters are transformed here, as in ggml, so that kernels need no exponential for them:
// softplus keeps both alphas positive.
struct ggml_tensor *ggml_xielu(struct ggml_context *ctx, struct ggml_tensor *a, float alpha_n,
                               float alpha_p, float beta, float eps) {
    return op_build(
        &(struct op_call){OP(ctx, UNARY), .src = {a},
                          .params = {GGML_UNARY_OP_XIELU, op_bits(beta + softplus(alpha_n)),
                                     op_bits(softplus(alpha_p)), op_bits(beta), op_bits(eps)}});
}

struct ggml_tensor *ggml_leaky_relu(struct ggml_context *ctx, struct ggml_tensor *a,
                                    float negative_slope, bool inplace) {
    struct op_call call = {OP(ctx, LEAKY_RELU), .src = {a}, .params = {op_bits(negative_slope)}};
    return inplace ? op_build_inplace(&call) : op_build(&call);
}

struct ggml_tensor *ggml_silu_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                   struct ggml_tensor *b) {
    return op_build(&(struct op_call){OP(ctx, SILU_BACK), .src = {a, b}});
}
