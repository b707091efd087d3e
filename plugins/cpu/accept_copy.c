// SPDX-License-Identifier: MIT
// What kernels/copy.c computes.
#include "kernel_list.h"
#include "shape.h"

static bool is_integer(enum ggml_type type) {
    return type == GGML_TYPE_I8 || type == GGML_TYPE_I16 || type == GGML_TYPE_I32 ||
           type == GGML_TYPE_I64;
}

// Only cpy converts; blocks hold no indices, so that integers do not become blocks.
static bool accepts_types(const struct ggml_tensor *node, enum ggml_type from) {
    const enum ggml_type to = node->type;
    if (from == to) return true;
    return node->op == GGML_OP_CPY && !(is_integer(from) && cpu_type_size(to).block > 1) &&
           !(is_integer(to) && cpu_type_size(from).block > 1);
}

bool cpu_accepts_copy(const struct ggml_tensor *node) {
    const struct ggml_tensor *src = node->src[0];
    return accepts_types(node, src->type) && cpu_nelements(src) == cpu_nelements(node) &&
           src->ne[0] % cpu_type_size(src->type).block == 0 &&
           node->ne[0] % cpu_type_size(node->type).block == 0;
}
