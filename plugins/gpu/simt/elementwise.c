// SPDX-License-Identifier: MIT
// Functions of one and of two operands, gated units: kernels/elementwise.cpp.
#include "gpu/base/nodes.h"
#include "simt/rows.h"

bool simt_accepts_any(const struct ggml_tensor *node) {
    (void)node;
    return true;
}

// The result may have other strides than the source.
bool simt_accepts_same(const struct ggml_tensor *node) {
    return ggml_are_same_shape(node, node->src[0]);
}

bool simt_accepts_unary(const struct ggml_tensor *node) {
    const int32_t op = node->op_params[0];
    return op >= 0 && op < GGML_UNARY_OP_COUNT && simt_accepts_same(node);
}

void simt_launch_unary(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = gpu_function_of(node);
    simt_launch_elements(l, node);
}

bool simt_accepts_binary(const struct ggml_tensor *node) {
    return ggml_fits_binary(node);
}

void simt_launch_binary(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = gpu_binary_function_of(node->op);
    simt_launch_elements(l, node);
}

// Operands and results of whole blocks.
bool simt_accepts_add_coded(const struct ggml_tensor *node) {
    return ggml_fits_binary(node) && ggml_rows_separable(node) && ggml_rows_separable(node->src[0]);
}

bool simt_accepts_add_id(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_I32) && ggml_fits_add_id(node);
}

bool simt_accepts_glu(const struct ggml_tensor *node) {
    const int32_t op = node->op_params[0];
    return op >= 0 && op < GGML_GLU_OP_COUNT && ggml_fits_glu(node);
}
