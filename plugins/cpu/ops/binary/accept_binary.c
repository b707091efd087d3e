// SPDX-License-Identifier: MIT
// Which shapes and layouts binary.c computes.
#include "ggml-shape.h"
#include "runtime/kernel_list.h"

bool cpu_accepts_binary(const struct ggml_tensor *node) {
    return ggml_fits_binary(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

// Quantised operands and results are unpacked and packed in whole blocks.
bool cpu_accepts_add_packed(const struct ggml_tensor *node) {
    return cpu_accepts_binary(node) && ggml_has_whole_blocks(node->src[0]) &&
           ggml_has_whole_blocks(node);
}

// b has a row per id; rows of all operands are dense.
bool cpu_accepts_add_id(const struct ggml_tensor *node) {
    return ggml_fits_add_id(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]) &&
           ggml_rows_dense(node->src[1]);
}
