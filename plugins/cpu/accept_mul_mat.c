// SPDX-License-Identifier: MIT
// What kernels/mul_mat.c and kernels/mul_mat_id.c compute, and their work memory.
#include "kernel_list.h"
#include "kernels/gemm_size.h"
#include "kernels/mul_mat.h"

static size_t panel_size(int n_threads) {
    return (size_t)n_threads * GEMM_MAX_ROWS * GEMM_DEPTH * sizeof(float);
}

// Blocks are unpacked whole, and only from dense rows.
static bool accepts_columns(const struct ggml_tensor *b) {
    const int64_t block = cpu_type_size(b->type).block;
    return block == 1 || (cpu_rows_dense(b) && b->ne[0] % block == 0);
}

// Rows of src0, columns of src1 and the type of src0 fit.
static bool accepts_operands(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return cpu_rows_dense(a) && a->ne[0] == b->ne[0] &&
           a->ne[0] % cpu_type_size(a->type).block == 0 && accepts_columns(b) &&
           node->nb[0] == sizeof(float) && node->ne[0] == a->ne[1];
}

bool cpu_accepts_mul_mat(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return accepts_operands(node) && a->ne[2] > 0 && a->ne[3] > 0 && b->ne[2] % a->ne[2] == 0 &&
           b->ne[3] % a->ne[3] == 0 && node->ne[1] == b->ne[1] && node->ne[2] == b->ne[2] &&
           node->ne[3] == b->ne[3];
}

size_t cpu_work_mul_mat(const struct ggml_tensor *node, int n_threads) {
    return mul_mat_pack_size(node->src[1]) + panel_size(n_threads);
}

// A multiplication and an addition per element of src0 and row of src1.
int64_t cpu_cost_mul_mat(const struct ggml_tensor *node) {
    const double cost = (double)cpu_nelements(node) * (double)node->src[0]->ne[0];
    return cost < 1e18 ? (int64_t)cost : INT64_MAX;
}

bool cpu_accepts_mul_mat_id(const struct ggml_tensor *node) {
    const struct ggml_tensor *b = node->src[1];
    const struct ggml_tensor *ids = node->src[2];
    return accepts_operands(node) && node->src[0]->ne[3] == 1 && b->ne[3] == 1 && b->ne[1] > 0 &&
           ids->ne[2] == 1 && ids->ne[3] == 1 && ids->ne[1] == b->ne[2] &&
           ids->ne[0] % b->ne[1] == 0 && node->ne[1] == ids->ne[0] && node->ne[2] == ids->ne[1] &&
           node->ne[3] == 1 && ids->ne[0] < INT32_MAX && ids->ne[1] < INT32_MAX &&
           node->src[0]->ne[2] < INT32_MAX;
}

size_t cpu_work_mul_mat_id(const struct ggml_tensor *node, int n_threads) {
    return mul_mat_id_layout(node).panels + panel_size(n_threads);
}
