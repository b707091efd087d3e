// SPDX-License-Identifier: MIT
// What kernels/rows.c computes.
#include "kernel_list.h"
#include "shape.h"

bool cpu_accepts_get_rows(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *ids = node->src[1];
    return cpu_rows_dense(a) && cpu_rows_dense(node) && a->ne[0] == node->ne[0] &&
           a->ne[0] % cpu_type_size(a->type).block == 0 && ids->ne[3] == 1 &&
           node->ne[1] == ids->ne[0] && node->ne[2] == ids->ne[1] && node->ne[3] == ids->ne[2] &&
           a->ne[2] == ids->ne[1] && a->ne[3] == ids->ne[2];
}

bool cpu_accepts_set_rows(const struct ggml_tensor *node) {
    const struct ggml_tensor *b = node->src[0];
    const struct ggml_tensor *ids = node->src[1];
    return cpu_rows_dense(node) && cpu_rows_dense(b) && node->ne[0] == b->ne[0] &&
           b->ne[0] % cpu_type_size(node->type).block == 0 && node->ne[2] == b->ne[2] &&
           node->ne[3] == b->ne[3] && ids->ne[0] == b->ne[1] && ids->ne[1] > 0 && ids->ne[2] > 0 &&
           b->ne[2] % ids->ne[1] == 0 && b->ne[3] % ids->ne[2] == 0 && ids->ne[3] == 1;
}
