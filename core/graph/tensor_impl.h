// SPDX-License-Identifier: MIT
// Creation of tensors and views, for builders.
#ifndef GGML_GRAPH_TENSOR_IMPL_H
#define GGML_GRAPH_TENSOR_IMPL_H

#include "ggml-impl.h"

// New packed tensor of n_dims (1..4) extents; with view_src a view at view_offs bytes from it (of
// the root, if view_src is itself a view), with data as soon as the root has it. Op NONE, no
// sources, no name. Impossible types, extents (negative, not whole blocks, overflowing) or windows
// and a full context answer an error tensor; a view of an error tensor is one too. Never NULL.
// [stream]
struct ggml_tensor *ggml_new_tensor_impl(struct ggml_context *ctx, enum ggml_type type, int n_dims,
                                         const int64_t *ne, struct ggml_tensor *view_src,
                                         size_t view_offs);

// The same as a view with the strides nb[1 .. n_dims-1], in bytes (nb[0] is not read); higher
// dimensions are packed on top. The bytes it reaches must lie inside the root, unless it has no
// elements. [stream]
struct ggml_tensor *ggml_new_view_impl(struct ggml_context *ctx, enum ggml_type type, int n_dims,
                                       const int64_t *ne, const size_t *nb,
                                       struct ggml_tensor *view_src, size_t view_offs);

#endif
