// SPDX-License-Identifier: MIT
// Creation of tensors and views, for builders.
#ifndef GGML_TENSOR_TENSOR_IMPL_H
#define GGML_TENSOR_TENSOR_IMPL_H

#include "ggml-impl.h"

// New packed tensor of n_dims (1..4) extents; with view_src a view at view_offs bytes from it (of
// the root, if view_src is itself a view), with data as soon as the root has it. Op NONE, no
// sources, no name. Impossible types, extents (negative, not whole blocks, overflowing) or windows
// and a full context return an error tensor; a view of an error tensor is one too. Never NULL.
// [stream]
struct ggml_tensor *ggml_new_tensor_impl(struct ggml_context *ctx, enum ggml_type type, int n_dims,
                                         const int64_t *ne, struct ggml_tensor *view_src,
                                         size_t view_offs);

// The same as a view with the strides nb[1 .. n_dims-1], in bytes (nb[0] is not read); higher
// dimensions are packed on top. The bytes it reaches, or those that its elements would take side by
// side, must lie inside the root. [stream]
struct ggml_tensor *ggml_new_view_impl(struct ggml_context *ctx, enum ggml_type type, int n_dims,
                                       const int64_t *ne, const size_t *nb,
                                       struct ggml_tensor *view_src, size_t view_offs);

// The same bytes with the extents and strides of another tensor, under no name. [stream]
struct ggml_tensor *ggml_new_alias_impl(struct ggml_context *ctx, struct ggml_tensor *src);

// Owner of a tensor's memory: itself unless it is a view. Two steps, as graphs may come from
// elsewhere than this library's builders, whose views refer to the owner itself. [any-thread]
static inline struct ggml_tensor *tensor_root(struct ggml_tensor *tensor) {
    struct ggml_tensor *root = tensor->view_src ? tensor->view_src : tensor;
    return root->view_src ? root->view_src : root;
}

// Number of sources up to the last; there may be NULL among them. Most operations have one or two
// of the ten that there may be: one test tells that, and only others are counted from the end.
// [any-thread]
static inline int tensor_count_sources(const struct ggml_tensor *tensor) {
    enum { USUAL = 2 };
    uintptr_t others = 0;
    for (int i = USUAL; i < GGML_MAX_SRC; ++i) {
        others |= (uintptr_t)tensor->src[i];
    }
    int n = others != 0 ? GGML_MAX_SRC : USUAL;
    while (n > 0 && !tensor->src[n - 1]) {
        --n;
    }
    return n;
}

// Whether extents are whole blocks of the type and the sizes and strides of a packed tensor of them
// are far from every limit, which is quick to tell. false: one has to look closer. [any-thread]
static inline bool ggml_shape_is_small(const struct ggml_type_traits *type,
                                       const int64_t ne[GGML_MAX_DIMS]) {
    const uint64_t n0 = (uint64_t)ne[0], n1 = (uint64_t)ne[1];
    const uint64_t n2 = (uint64_t)ne[2], n3 = (uint64_t)ne[3];
    if ((n0 | n1) >> 31 != 0 || (n2 | n3) >> 13 != 0) return false;
    if ((n0 * n1) >> 40 != 0 || (n2 * n3) >> 13 != 0) return false;
    const int64_t block = type->blck_size;
    return block == 1 || (block > 0 && ne[0] % block == 0);
}

#endif
