// SPDX-License-Identifier: MIT
// Shaders and kernels switch over these numbers: each side has a list of its own, and conformance
// tests would find them to differ.
#include "gpu/base/nodes.h"

int gpu_function_of(const struct ggml_tensor *node) {
    switch (node->op) {
    case GGML_OP_SQR: return GPU_FUNCTION_SQR;
    case GGML_OP_SQRT: return GPU_FUNCTION_SQRT;
    case GGML_OP_LOG: return GPU_FUNCTION_LOG;
    case GGML_OP_SIN: return GPU_FUNCTION_SIN;
    case GGML_OP_COS: return GPU_FUNCTION_COS;
    case GGML_OP_LEAKY_RELU: return GPU_FUNCTION_LEAKY_RELU;
    case GGML_OP_SCALE: return GPU_FUNCTION_SCALE;
    case GGML_OP_CLAMP: return GPU_FUNCTION_CLAMP;
    case GGML_OP_FILL: return GPU_FUNCTION_FILL;
    // UNARY keeps its function there.
    default: return node->op_params[0];
    }
}

int gpu_binary_function_of(enum ggml_op op) {
    switch (op) {
    case GGML_OP_SUB: return 1;
    case GGML_OP_MUL: return 2;
    case GGML_OP_DIV: return 3;
    default: return 0;
    }
}

enum gpu_kept gpu_kept_columns(const struct ggml_tensor *node) {
    if (node->op != GGML_OP_TRI) return GPU_KEPT_TO_PAST;
    switch ((enum ggml_tri_type)node->op_params[0]) {
    case GGML_TRI_TYPE_UPPER_DIAG: return GPU_KEPT_FROM_DIAGONAL;
    case GGML_TRI_TYPE_UPPER: return GPU_KEPT_ABOVE_DIAGONAL;
    case GGML_TRI_TYPE_LOWER_DIAG: return GPU_KEPT_TO_DIAGONAL;
    default: return GPU_KEPT_BELOW_DIAGONAL;
    }
}

bool gpu_writes_source(const struct ggml_tensor *node, int s) {
    return node->op == GGML_OP_OPT_STEP_ADAMW && (s == 2 || s == 3);
}

uint32_t gpu_power_of_two_within(int64_t n) {
    uint32_t power = 1;
    while ((int64_t)power * 2 <= n)
        power *= 2;
    return power;
}
