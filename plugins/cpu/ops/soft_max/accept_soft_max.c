// SPDX-License-Identifier: MIT
// What soft_max.c computes.
#include "ggml-shape.h"
#include "runtime/kernel_list.h"

bool cpu_accepts_soft_max(const struct ggml_tensor *node) {
    return ggml_fits_soft_max(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

bool cpu_accepts_diag_mask(const struct ggml_tensor *node) {
    return ggml_are_same_shape(node, node->src[0]) && ggml_rows_dense(node) &&
           ggml_rows_dense(node->src[0]);
}
