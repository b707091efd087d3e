// SPDX-License-Identifier: MIT
// Products: kernels/mul_mat.cpp.
#include "simt/rows.h"

enum { TILE = 32, FEW_COLUMNS = 8, MAX_BLOCKS_YZ = 65535 };

// Tiles of columns are counted in y, of which a grid has 65,535; matrices beyond that are taken in
// turn, and rows are counted in x.
bool simt_accepts_mul_mat(const struct ggml_tensor *node) {
    return ggml_fits_mul_mat(node) && ggml_rows_separable(node->src[0]) &&
           ggml_rows_separable(node->src[1]) && (node->ne[1] + TILE - 1) / TILE <= MAX_BLOCKS_YZ;
}

// A warp per element reads a row of the weights once for each column: cheaper than tiles of which
// most would be empty.
bool simt_accepts_mul_mat_vec(const struct ggml_tensor *node) {
    return node->ne[1] <= FEW_COLUMNS && simt_accepts_mul_mat(node);
}

void simt_launch_mul_mat(struct simt_work *l, const struct ggml_tensor *node) {
    const int64_t matrices = node->ne[2] * node->ne[3];
    l->grid[0] = (unsigned)((node->ne[0] + TILE - 1) / TILE);
    l->grid[1] = (unsigned)((node->ne[1] + TILE - 1) / TILE);
    l->grid[2] = (unsigned)MIN(matrices, MAX_BLOCKS_YZ);
    l->args.numbers[0] = l->grid[2];
}

bool simt_accepts_mul_mat_id(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_I32) && ggml_fits_mul_mat_id(node) &&
           ggml_rows_separable(node->src[0]) && ggml_rows_separable(node->src[1]);
}

bool simt_accepts_out_prod(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    return ggml_rows_separable(a) && a->ne[1] == b->ne[1] && ggml_is_shared_from(a, b, 2) &&
           ggml_has_shape(node, a->ne[0], b->ne[0], b->ne[2], b->ne[3]);
}
