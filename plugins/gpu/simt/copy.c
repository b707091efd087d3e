// SPDX-License-Identifier: MIT
// Moves and conversions: kernels/copy.cpp.
#include "gpu/base/nodes.h"
#include "simt/rows.h"

bool simt_accepts_move(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && ggml_nelements(a) == ggml_nelements(node) &&
           ggml_has_whole_blocks(a) && ggml_has_whole_blocks(node);
}

bool simt_accepts_convert(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_nelements(a) == ggml_nelements(node) && ggml_rows_separable(a);
}

// Blocks of the result in the order of its elements.
bool simt_accepts_encode(const struct ggml_tensor *node) {
    return ggml_nelements(node->src[0]) == ggml_nelements(node) && ggml_has_whole_blocks(node) &&
           ggml_rows_separable(node);
}

bool simt_accepts_repeat(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && ggml_repeats(a, node) && ggml_rows_separable(a) &&
           ggml_rows_separable(node);
}

bool simt_accepts_concat(const struct ggml_tensor *node) {
    return ggml_fits_concat(node);
}

bool simt_accepts_get_rows(const struct ggml_tensor *node) {
    return ggml_fits_get_rows(node) && ggml_rows_separable(node->src[0]);
}

bool simt_accepts_set_rows(const struct ggml_tensor *node) {
    return ggml_fits_set_rows(node);
}

// A thread per column, which goes through the rows in order.
void simt_launch_set_rows(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *b = node->src[0];
    simt_launch_threads(l, b->ne[0] * b->ne[2] * b->ne[3]);
}

bool simt_accepts_set_rows_encoded(const struct ggml_tensor *node) {
    return ggml_fits_set_rows(node) && ggml_rows_separable(node);
}

// A thread per block of a row.
void simt_launch_set_rows_encoded(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *b = node->src[0];
    simt_launch_threads(l, b->ne[0] / ggml_blck_size(node->type) * b->ne[2] * b->ne[3]);
}

bool simt_accepts_diag(const struct ggml_tensor *node) {
    return ggml_fits_diag(node);
}

bool simt_accepts_tri(const struct ggml_tensor *node) {
    return ggml_fits_tri(node);
}

void simt_launch_triangle(struct simt_work *l, const struct ggml_tensor *node) {
    const long long minus_infinity = 0xff800000;
    l->args.numbers[0] = gpu_kept_columns(node);
    l->args.numbers[1] = node->op == GGML_OP_DIAG_MASK_INF ? minus_infinity : 0;
    simt_launch_elements(l, node);
}

bool simt_accepts_pad(const struct ggml_tensor *node) {
    return ggml_fits_pad(node) && ggml_nelements(node->src[0]) > 0;
}

bool simt_accepts_roll(const struct ggml_tensor *node) {
    return ggml_fits_roll(node);
}
