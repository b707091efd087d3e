// SPDX-License-Identifier: MIT
// Which shapes and layouts kernels/binary.c computes.
#include "kernel_list.h"
#include "shape.h"

bool cpu_accepts_binary(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return cpu_same_shape(node, a) && cpu_can_repeat(b, a) && cpu_rows_dense(node) &&
           cpu_rows_dense(a);
}

bool cpu_accepts_add_packed(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return cpu_accepts_binary(node) && a->ne[0] % cpu_type_size(a->type).block == 0 &&
           node->ne[0] % cpu_type_size(node->type).block == 0;
}

bool cpu_accepts_add_id(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const struct ggml_tensor *ids = node->src[2];
    return cpu_same_shape(node, a) && node->ne[3] == 1 && b->ne[0] == a->ne[0] && b->ne[2] == 1 &&
           b->ne[3] == 1 && ids->ne[0] == a->ne[1] && ids->ne[1] == a->ne[2] && ids->ne[2] == 1 &&
           ids->ne[3] == 1 && cpu_rows_dense(node) && cpu_rows_dense(a) && cpu_rows_dense(b);
}
