// SPDX-License-Identifier: MIT
// What kernels/copy.c computes.
#include "kernel_list.h"
#include "shape.h"

bool cpu_accepts_copy(const struct ggml_tensor *node) {
    const struct ggml_tensor *src = node->src[0];
    return cpu_nelements(src) == cpu_nelements(node) &&
           src->ne[0] % cpu_type_size(src->type).block == 0 &&
           node->ne[0] % cpu_type_size(node->type).block == 0;
}
