// SPDX-License-Identifier: MIT
// What mul_mat.c and mul_mat_id.c compute, and their work memory.
#include "ops/mul_mat/mul_mat.h"
#include "runtime/kernel_list.h"

// src1 may have any strides if its type is plain.
static bool accepts_operands(const struct ggml_tensor *node) {
    return ggml_rows_dense(node->src[0]) && ggml_rows_separable(node->src[1]) &&
           ggml_rows_dense(node);
}

bool cpu_accepts_mul_mat(const struct ggml_tensor *node) {
    return ggml_fits_mul_mat(node) && accepts_operands(node);
}

// Columns as floats or rounded, and panels per thread.
size_t cpu_work_mul_mat(const struct ggml_tensor *node, int n_threads) {
    return mul_mat_pack_size(node->src[1]) + mul_mat_strips_size(node) +
           (size_t)n_threads * mul_mat_thread_size(node, mul_mat_columns(node));
}

// A multiplication and an addition per element of src0 and row of src1.
int64_t cpu_cost_mul_mat(const struct ggml_tensor *node) {
    const double cost = (double)ggml_nelements(node) * (double)node->src[0]->ne[0];
    return cost < 1e18 ? (int64_t)cost : INT64_MAX;
}

// Counts and pairs are 32-bit numbers.
bool cpu_accepts_mul_mat_id(const struct ggml_tensor *node) {
    const struct ggml_tensor *ids = node->src[2];
    return ggml_fits_mul_mat_id(node) && accepts_operands(node) && ids->ne[0] < INT32_MAX &&
           ids->ne[1] < INT32_MAX && node->src[0]->ne[2] < INT32_MAX;
}

size_t cpu_work_mul_mat_id(const struct ggml_tensor *node, int n_threads) {
    return mul_mat_id_layout(node).panels + (size_t)n_threads * mul_mat_id_thread_size(node);
}
