// SPDX-License-Identifier: MIT
// What kernels/rope.c computes.
#include "kernel_list.h"
#include "kernels/rope.h"
#include "shape.h"

static bool accepts_mode(const struct ggml_tensor *node) {
    const int mode = ggml_get_op_params_i32(node, ROPE_MODE);
    const int n_dims = ggml_get_op_params_i32(node, ROPE_N_DIMS);
    const int n_offs = ggml_get_op_params_i32(node, ROPE_N_OFFS);
    if (n_dims <= 0 || n_dims % 2 != 0 || n_offs < 0) return false;
    switch (mode) {
    case GGML_ROPE_TYPE_NORMAL:
    case GGML_ROPE_TYPE_NEOX:
    case GGML_ROPE_TYPE_MROPE:
    case GGML_ROPE_TYPE_IMROPE: return (int64_t)n_offs + n_dims <= node->ne[0];
    case GGML_ROPE_TYPE_VISION: return n_offs == 0 && (int64_t)n_dims * 2 == node->ne[0];
    default: return false;
    }
}

static bool accepts_sections(const struct ggml_tensor *node) {
    int64_t sum = 0;
    for (uint32_t s = 0; s < 4; ++s) {
        const int size = ggml_get_op_params_i32(node, ROPE_SECTIONS + s);
        if (size < 0) return false;
        sum += size;
    }
    return sum > 0 && sum <= node->ne[0];
}

bool cpu_accepts_rope(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *positions = node->src[1];
    const struct ggml_tensor *factors = node->src[2];
    if (!accepts_mode(node) || !cpu_same_shape(node, a) || a->type != node->type) return false;
    const int mode = ggml_get_op_params_i32(node, ROPE_MODE);
    const bool multi = (mode & GGML_ROPE_TYPE_MROPE) != 0;
    if (multi && !accepts_sections(node)) return false;
    const int64_t n_pairs =
        ggml_get_op_params_i32(node, ROPE_N_DIMS) / (mode == GGML_ROPE_TYPE_VISION ? 1 : 2);
    return cpu_rows_dense(a) && cpu_rows_dense(node) && cpu_contiguous(positions) &&
           cpu_nelements(positions) >= node->ne[2] * (multi ? 4 : 1) &&
           (!factors || (cpu_contiguous(factors) && factors->ne[0] >= n_pairs));
}

size_t cpu_work_rope(const struct ggml_tensor *node, int n_threads) {
    return rope_work_doubles(node->ne[0]) * (size_t)n_threads * sizeof(double);
}
