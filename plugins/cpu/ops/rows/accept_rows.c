// SPDX-License-Identifier: MIT
// What rows.c computes.
#include "ggml-shape.h"
#include "runtime/kernel_list.h"

// Rows are copied or unpacked as a whole.
bool cpu_accepts_get_rows(const struct ggml_tensor *node) {
    return ggml_fits_get_rows(node) && ggml_rows_dense(node->src[0]) && ggml_rows_dense(node);
}

bool cpu_accepts_set_rows(const struct ggml_tensor *node) {
    return ggml_fits_set_rows(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}
