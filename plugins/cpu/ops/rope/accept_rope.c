// SPDX-License-Identifier: MIT
// What rope.c computes.
#include "ggml-shape.h"
#include "ops/rope/rope.h"
#include "runtime/kernel_list.h"

bool cpu_accepts_rope(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_fits_rope(node) && a->type == node->type && ggml_rows_dense(a) &&
           ggml_rows_dense(node);
}

// A table of cosines and sines per thread, in double.
size_t cpu_work_rope(const struct ggml_tensor *node, int n_threads) {
    return rope_work_doubles(node->ne[0]) * (size_t)n_threads * sizeof(double);
}
