// SPDX-License-Identifier: MIT
// Which shapes and layouts kernels/reduce.c, norm.c, repeat.c and concat.c compute.
#include "kernel_list.h"
#include "shape.h"
#include "sum_piece.h"

bool cpu_accepts_sum(const struct ggml_tensor *node) {
    return cpu_nelements(node) == 1 && cpu_rows_dense(node->src[0]);
}

size_t cpu_work_sum(const struct ggml_tensor *node, int n_threads) {
    (void)n_threads;
    return (size_t)cpu_sum_pieces(node->src[0]).count * sizeof(double);
}

static bool same_rows(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->ne[1] == b->ne[1] && a->ne[2] == b->ne[2] && a->ne[3] == b->ne[3];
}

bool cpu_accepts_sum_rows(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return node->ne[0] == 1 && same_rows(node, a) && cpu_rows_dense(a);
}

bool cpu_accepts_argmax(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return node->ne[0] == a->ne[1] && cpu_nrows(node) == 1 && a->ne[2] == 1 && a->ne[3] == 1 &&
           a->ne[0] <= INT32_MAX && a->nb[0] % sizeof(float) == 0;
}

// A source with gaps inside its rows is gathered in the result, which must then be other memory.
bool cpu_accepts_norm(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return cpu_same_shape(node, a) && cpu_rows_dense(node) &&
           (cpu_rows_dense(a) || (!node->view_src && a->nb[0] % sizeof(float) == 0));
}

bool cpu_accepts_rms_norm_mul(const struct ggml_tensor *node) {
    const bool first = node->src[0]->op == GGML_OP_RMS_NORM;
    const struct ggml_tensor *norm = node->src[first ? 0 : 1];
    const struct ggml_tensor *weight = node->src[first ? 1 : 0];
    const struct ggml_tensor *x = norm->src[0];
    return norm->op == GGML_OP_RMS_NORM && norm != weight && x && x->type == GGML_TYPE_F32 &&
           cpu_same_shape(node, x) && cpu_same_shape(node, norm) && cpu_can_repeat(weight, node) &&
           weight->ne[0] == node->ne[0] && cpu_rows_dense(node) && cpu_rows_dense(x) &&
           cpu_rows_dense(weight);
}

bool cpu_accepts_group_norm(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_get_op_params_i32(node, 0) > 0 && cpu_same_shape(node, a) && cpu_rows_dense(node) &&
           cpu_rows_dense(a);
}

bool cpu_accepts_repeat(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && cpu_can_repeat(a, node) && cpu_rows_dense(a) &&
           cpu_rows_dense(node) && a->ne[0] % cpu_type_size(a->type).block == 0;
}

// Blocks are copied whole, and only from dense rows.
static bool copies_rows(const struct ggml_tensor *t) {
    const int64_t block = cpu_type_size(t->type).block;
    return cpu_rows_dense(t) ? t->ne[0] % block == 0 : block == 1;
}

bool cpu_accepts_concat(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const int32_t dim = ggml_get_op_params_i32(node, 0);
    if (dim < 0 || dim >= GGML_MAX_DIMS || a->type != node->type || b->type != node->type)
        return false;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t expected = d == dim ? a->ne[d] + b->ne[d] : a->ne[d];
        if (node->ne[d] != expected || (d != dim && b->ne[d] != a->ne[d])) return false;
    }
    return cpu_rows_dense(node) && copies_rows(node) && copies_rows(a) && copies_rows(b);
}
