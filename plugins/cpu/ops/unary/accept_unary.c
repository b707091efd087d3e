// SPDX-License-Identifier: MIT
// Which shapes and layouts unary.c, scale.c and glu.c compute.
#include "ggml-shape.h"
#include "runtime/kernel_list.h"

// Elementwise functions: the same shape, rows dense.
bool cpu_accepts_map(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_are_same_shape(node, a) && ggml_rows_dense(node) && ggml_rows_dense(a);
}

// The function has a number in op_params, which may come from a file.
bool cpu_accepts_unary(const struct ggml_tensor *node) {
    const int32_t op = ggml_get_op_params_i32(node, 0);
    return op >= 0 && op < GGML_UNARY_OP_COUNT && cpu_accepts_map(node);
}

bool cpu_accepts_glu(const struct ggml_tensor *node) {
    const int32_t op = ggml_get_op_params_i32(node, 0);
    return op >= 0 && op < GGML_GLU_OP_COUNT && ggml_fits_glu(node);
}
