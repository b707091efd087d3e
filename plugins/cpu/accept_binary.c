// SPDX-License-Identifier: MIT
// Which shapes and layouts kernels/binary.c computes.
#include "kernel_list.h"
#include "shape.h"

bool cpu_accepts_binary(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return cpu_same_shape(node, a) && cpu_can_repeat(b, a) && cpu_rows_dense(node) && cpu_rows_dense(a);
}
