// SPDX-License-Identifier: MIT
// Losses and optimiser steps.
#include "op/op_rules.h"

// Mean over rows of -sum(labels log softmax(a)), in one operation since the separate ones lose
// precision.
bool op_shape_cross_entropy_loss(struct op_call *call) {
    return op_need_same_shape(call, 1, 0) && op_set_ne(call, 1, 1, 1, 1);
}

struct ggml_tensor *ggml_cross_entropy_loss(struct ggml_context *ctx, struct ggml_tensor *a,
                                            struct ggml_tensor *b) {
    return op_build(&(struct op_call){OP(ctx, CROSS_ENTROPY_LOSS), .src = {a, b}});
}

// Sources: gradient of the loss (one number), logits, labels.
bool op_shape_cross_entropy_loss_back(struct op_call *call) {
    return op_need_shape(call, 0, 1, 1, 1, 1) && op_need_same_shape(call, 2, 1) &&
           op_set_ne_as(call, call->src[1]);
}

struct ggml_tensor *ggml_cross_entropy_loss_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, struct ggml_tensor *c) {
    return op_build(&(struct op_call){OP(ctx, CROSS_ENTROPY_LOSS_BACK), .src = {a, b, c}});
}

// AdamW has gradient and two moments between the parameter and its settings, SGD the gradient.
static int last_source(const struct op_call *call) {
    return call->op == GGML_OP_OPT_STEP_ADAMW ? 4 : 2;
}

// Weights may have any type that the device can update; settings are F32.
bool op_type_opt_step(struct op_call *call) {
    call->type = call->src[0]->type;
    return op_need_type(call, last_source(call), GGML_TYPE_F32);
}

// Every source but the last has the shape of the parameter.
static bool opt_step(struct op_call *call, int64_t n_params) {
    const int last = last_source(call);
    if ((call->src[0]->flags & GGML_TENSOR_FLAG_PARAM) == 0) {
        return op_fail(call, "src0 is no parameter; call ggml_set_param first");
    }
    for (int i = 1; i < last; ++i) {
        if (!op_need_same_shape(call, i, 0)) return false;
    }
    return op_need_shape(call, last, n_params, 1, 1, 1) && op_need_contiguous(call, last) &&
           op_set_ne_as(call, call->src[0]);
}

// alpha, beta1, beta2, eps, weight decay, and the two bias corrections.
bool op_shape_opt_step_adamw(struct op_call *call) {
    return opt_step(call, 7);
}

// alpha and weight decay.
bool op_shape_opt_step_sgd(struct op_call *call) {
    return opt_step(call, 2);
}

struct ggml_tensor *ggml_opt_step_adamw(struct ggml_context *ctx, struct ggml_tensor *a,
                                        struct ggml_tensor *grad, struct ggml_tensor *m,
                                        struct ggml_tensor *v, struct ggml_tensor *adamw_params) {
    return op_build_inplace(
        &(struct op_call){OP(ctx, OPT_STEP_ADAMW), .src = {a, grad, m, v, adamw_params}});
}

struct ggml_tensor *ggml_opt_step_sgd(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *grad, struct ggml_tensor *sgd_params) {
    return op_build_inplace(&(struct op_call){OP(ctx, OPT_STEP_SGD), .src = {a, grad, sgd_params}});
}
