// SPDX-License-Identifier: MIT
// What copy.c computes.
#include "ggml-shape.h"
#include "runtime/kernel_list.h"

static bool is_integer(enum ggml_type type) {
    return type == GGML_TYPE_I8 || type == GGML_TYPE_I16 || type == GGML_TYPE_I32 ||
           type == GGML_TYPE_I64;
}

// All of them convert, to all that are encoded to; blocks hold no indices, so that integers do not
// become blocks.
static bool accepts_types(const struct ggml_tensor *node, enum ggml_type from) {
    const enum ggml_type to = node->type;
    if (from == to) return true;
    if (T_GRIDS >> to & 1) return false;
    return !(is_integer(from) && ggml_blck_size(to) > 1) &&
           !(is_integer(to) && ggml_blck_size(from) > 1);
}

// Copies may change the shape: only the number of elements has to be the same.
bool cpu_accepts_copy(const struct ggml_tensor *node) {
    const struct ggml_tensor *src = node->src[0];
    return accepts_types(node, src->type) && ggml_nelements(src) == ggml_nelements(node) &&
           ggml_rows_separable(src) && ggml_rows_separable(node);
}
