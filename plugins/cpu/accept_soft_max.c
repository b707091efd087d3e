// SPDX-License-Identifier: MIT
// What kernels/soft_max.c computes.
#include "kernel_list.h"
#include "shape.h"

static bool same_rows(const struct ggml_tensor *node) {
    return cpu_same_shape(node, node->src[0]) && cpu_rows_dense(node) &&
           cpu_rows_dense(node->src[0]);
}

bool cpu_accepts_soft_max(const struct ggml_tensor *node) {
    const struct ggml_tensor *mask = node->src[1];
    const struct ggml_tensor *sinks = node->src[2];
    if (!same_rows(node)) return false;
    if (sinks && !(cpu_contiguous(sinks) && sinks->ne[0] >= node->ne[2])) return false;
    return !mask || (cpu_rows_dense(mask) && mask->ne[0] == node->ne[0] &&
                     mask->ne[1] >= node->ne[1] && mask->ne[2] > 0 && mask->ne[3] > 0 &&
                     node->ne[2] % mask->ne[2] == 0 && node->ne[3] % mask->ne[3] == 0);
}

bool cpu_accepts_diag_mask(const struct ggml_tensor *node) {
    return same_rows(node);
}
