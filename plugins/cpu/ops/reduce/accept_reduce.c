// SPDX-License-Identifier: MIT
// Which shapes and layouts reduce.c, norm.c, repeat.c and concat.c compute.
#include "ggml-shape.h"
#include "ops/reduce/sum_piece.h"
#include "runtime/kernel_list.h"

// The whole tensor, of any shape.
bool cpu_accepts_sum(const struct ggml_tensor *node) {
    return ggml_nelements(node) == 1;
}

// A sum per piece; independent of the number of threads.
size_t cpu_work_sum(const struct ggml_tensor *node, int n_threads) {
    (void)n_threads;
    return (size_t)cpu_sum_pieces(node->src[0]).count * sizeof(double);
}

// Used by sum_rows and mean.
bool cpu_accepts_sum_rows(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return node->ne[0] == 1 && ggml_same_shape_from(node, a, 1);
}

// Rows may have gaps, of whole floats.
bool cpu_accepts_argmax(const struct ggml_tensor *node) {
    return ggml_fits_argmax(node) && node->src[0]->nb[0] % sizeof(float) == 0;
}

// A source with gaps inside its rows is gathered in the result, which must then be other memory.
bool cpu_accepts_norm(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_are_same_shape(node, a) && ggml_rows_dense(node) &&
           (ggml_rows_dense(a) || (!node->view_src && a->nb[0] % sizeof(float) == 0));
}

// Whether RMS_NORM followed by MUL can be computed in one pass: the norm is either operand of the
// product, the weight is a vector along the rows, and all rows are dense.
bool cpu_accepts_rms_norm_mul(const struct ggml_tensor *node) {
    const bool first = node->src[0]->op == GGML_OP_RMS_NORM;
    const struct ggml_tensor *norm = node->src[first ? 0 : 1];
    const struct ggml_tensor *weight = node->src[first ? 1 : 0];
    const struct ggml_tensor *x = norm->src[0];
    return norm->op == GGML_OP_RMS_NORM && norm != weight && x && x->type == GGML_TYPE_F32 &&
           ggml_are_same_shape(node, x) && ggml_are_same_shape(node, norm) &&
           ggml_repeats(weight, node) && weight->ne[0] == node->ne[0] && ggml_rows_dense(node) &&
           ggml_rows_dense(x) && ggml_rows_dense(weight);
}

// At least one group; planes may have gaps, rows not.
bool cpu_accepts_group_norm(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_get_op_params_i32(node, 0) > 0 && ggml_are_same_shape(node, a) &&
           ggml_rows_dense(node) && ggml_rows_dense(a);
}

// Quantised types repeat as whole blocks.
bool cpu_accepts_repeat(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && ggml_repeats(a, node) && ggml_rows_dense(a) &&
           ggml_rows_dense(node) && ggml_has_whole_blocks(a);
}

bool cpu_accepts_concat(const struct ggml_tensor *node) {
    return ggml_fits_concat(node) && ggml_rows_dense(node);
}
