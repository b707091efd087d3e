// SPDX-License-Identifier: MIT
// Functions of one and of two operands, gated units: kernels/elementwise.cpp.
#include "simt/rows.h"

// Numbers of the functions that are not of GGML_OP_UNARY.
enum function {
    FUNCTION_SQR = 32,
    FUNCTION_SQRT,
    FUNCTION_LOG,
    FUNCTION_SIN,
    FUNCTION_COS,
    FUNCTION_LEAKY_RELU,
    FUNCTION_SCALE,
    FUNCTION_CLAMP,
    FUNCTION_FILL,
};

bool simt_accepts_any(const struct ggml_tensor *node) {
    (void)node;
    return true;
}

bool simt_accepts_same(const struct ggml_tensor *node) {
    return ggml_are_same_shape(node, node->src[0]);
}

bool simt_accepts_unary(const struct ggml_tensor *node) {
    const int32_t op = node->op_params[0];
    return op >= 0 && op < GGML_UNARY_OP_COUNT && simt_accepts_same(node);
}

static int function_of(const struct ggml_tensor *node) {
    switch (node->op) {
    case GGML_OP_SQR: return FUNCTION_SQR;
    case GGML_OP_SQRT: return FUNCTION_SQRT;
    case GGML_OP_LOG: return FUNCTION_LOG;
    case GGML_OP_SIN: return FUNCTION_SIN;
    case GGML_OP_COS: return FUNCTION_COS;
    case GGML_OP_LEAKY_RELU: return FUNCTION_LEAKY_RELU;
    case GGML_OP_SCALE: return FUNCTION_SCALE;
    case GGML_OP_CLAMP: return FUNCTION_CLAMP;
    case GGML_OP_FILL: return FUNCTION_FILL;
    default: return node->op_params[0];
    }
}

void simt_launch_unary(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = function_of(node);
    simt_launch_elements(l, node);
}

bool simt_accepts_binary(const struct ggml_tensor *node) {
    return ggml_fits_binary(node);
}

void simt_launch_binary(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = node->op == GGML_OP_SUB   ? 1
                         : node->op == GGML_OP_MUL ? 2
                         : node->op == GGML_OP_DIV ? 3
                                                   : 0;
    simt_launch_elements(l, node);
}

bool simt_accepts_add_id(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_I32) && ggml_fits_add_id(node);
}

bool simt_accepts_glu(const struct ggml_tensor *node) {
    const int32_t op = node->op_params[0];
    return op >= 0 && op < GGML_GLU_OP_COUNT && ggml_fits_glu(node);
}
