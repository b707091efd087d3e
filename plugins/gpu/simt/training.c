// SPDX-License-Identifier: MIT
// Sorting, gradients, optimiser steps: kernels/sort.cpp, kernels/training.cpp.
#include "simt/rows.h"

enum { MAX_SORTED = 16384 }; // elements of a row, each compared with each

bool simt_accepts_sort(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_same_shape_from(node, a, 1) && node->ne[0] <= a->ne[0] && a->ne[0] <= MAX_SORTED &&
           (node->op == GGML_OP_TOP_K || node->ne[0] == a->ne[0]);
}

void simt_launch_sort(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = node->op == GGML_OP_TOP_K || node->op_params[0] == GGML_SORT_ORDER_DESC;
    simt_launch_threads(l, ggml_nelements(node->src[0]));
}

bool simt_accepts_same_pair(const struct ggml_tensor *node) {
    return ggml_are_same_shape(node, node->src[0]) && ggml_are_same_shape(node, node->src[1]);
}

// ALiBi has no gradient.
bool simt_accepts_soft_max_back(const struct ggml_tensor *node) {
    return ggml_get_op_params_f32(node, 1) == 0.0f && simt_accepts_same_pair(node);
}

void simt_launch_row_back(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = node->op == GGML_OP_SOFT_MAX_BACK;
    simt_launch_row_blocks(l, ggml_nrows(node), node->ne[0]);
}

bool simt_accepts_repeat_back(const struct ggml_tensor *node) {
    return ggml_repeats(node, node->src[0]);
}

bool simt_accepts_opt_step(const struct ggml_tensor *node) {
    return ggml_fits_opt_step(node);
}
