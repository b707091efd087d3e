// SPDX-License-Identifier: MIT
// Sorting, gradients, losses, optimiser steps: kernels/sort.cpp, kernels/training.cpp.
#include "simt/rows.h"

// Elements that are sorted in shared memory, as in kernels/sort.cpp; elements of a row that are
// each compared with each.
enum { SORT_TILE = 2048, MAX_RANKED = 1 << 18, RANK_THREADS = 256 };

static bool accepts_sort(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_same_shape_from(node, a, 1) && node->ne[0] <= a->ne[0] && a->ne[0] <= INT32_MAX &&
           (node->op == GGML_OP_TOP_K || node->ne[0] == a->ne[0]);
}

// Rows that fit, and the first of longer ones where half of the room is left for others.
bool simt_accepts_sort(const struct ggml_tensor *node) {
    return accepts_sort(node) && (node->src[0]->ne[0] <= SORT_TILE || node->ne[0] <= SORT_TILE / 2);
}

bool simt_accepts_sort_rank(const struct ggml_tensor *node) {
    return accepts_sort(node) && node->src[0]->ne[0] <= MAX_RANKED;
}

static bool from_the_largest(const struct ggml_tensor *node) {
    return node->op == GGML_OP_TOP_K || node->op_params[0] == GGML_SORT_ORDER_DESC;
}

// A thread per pair.
void simt_launch_sort(struct simt_work *l, const struct ggml_tensor *node) {
    const int64_t n = node->src[0]->ne[0];
    l->args.numbers[0] = from_the_largest(node);
    simt_launch_row_blocks(l, ggml_nrows(node), (MIN(n, SORT_TILE) + 1) / 2);
}

// The last block of a row may have threads without an element.
void simt_launch_sort_rank(struct simt_work *l, const struct ggml_tensor *node) {
    const int64_t blocks = (node->src[0]->ne[0] + RANK_THREADS - 1) / RANK_THREADS;
    l->args.numbers[0] = from_the_largest(node);
    l->args.numbers[1] = blocks;
    l->grid[0] = (unsigned)(blocks * ggml_nrows(node));
    l->threads = RANK_THREADS;
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

// The loss is one number.
bool simt_accepts_cross_entropy(const struct ggml_tensor *node) {
    return ggml_nelements(node) == 1 && ggml_are_same_shape(node->src[0], node->src[1]);
}

// One block, for rows one after the other.
void simt_launch_cross_entropy(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_row_blocks(l, 1, node->src[0]->ne[0]);
}

bool simt_accepts_cross_entropy_back(const struct ggml_tensor *node) {
    return ggml_nelements(node->src[0]) == 1 && ggml_are_same_shape(node, node->src[1]) &&
           ggml_has_type(node->src[2], GGML_TYPE_F32) && ggml_are_same_shape(node, node->src[2]);
}

void simt_launch_cross_entropy_back(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_row_blocks(l, ggml_nrows(node), node->ne[0]);
}

bool simt_accepts_get_rows_back(const struct ggml_tensor *node) {
    return ggml_fits_get_rows_back(node) && ggml_rows_separable(node->src[0]);
}
