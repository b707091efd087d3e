// SPDX-License-Identifier: MIT
// What kernels/copy.c computes.
#include "kernel_list.h"
#include "shape.h"

static bool is_readable(enum ggml_type type) {
    return type == GGML_TYPE_F32 || type == GGML_TYPE_I32 ||
           ggml_get_type_traits(type)->to_float != NULL;
}

static bool is_writable(enum ggml_type type) {
    return type == GGML_TYPE_F32 || type == GGML_TYPE_I32 ||
           ggml_get_type_traits(type)->from_float_ref != NULL;
}

bool cpu_accepts_copy(const struct ggml_tensor *node) {
    const struct ggml_tensor *src = node->src[0];
    return cpu_nelements(src) == cpu_nelements(node) &&
           src->ne[0] % cpu_type_size(src->type).block == 0 &&
           node->ne[0] % cpu_type_size(node->type).block == 0 &&
           (src->type == node->type || (is_readable(src->type) && is_writable(node->type)));
}
