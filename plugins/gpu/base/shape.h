// SPDX-License-Identifier: MIT
// What loads and launches of shaders ask of the layout of tensors, beyond ggml-shape.h.
#ifndef GPU_SHAPE_H
#define GPU_SHAPE_H

#include "ggml-shape.h"

static inline uint64_t gpu_nelements(const struct ggml_tensor *t) {
    return (uint64_t)ggml_nelements(t);
}

static inline uint64_t gpu_nrows(const struct ggml_tensor *t) {
    return (uint64_t)ggml_nrows(t);
}

// Whether each row is dense and begins where 16-byte loads may: at such an address, or with blocks
// where their size permits it.
static inline bool gpu_is_wide(const struct ggml_tensor *t) {
    const size_t size = ggml_type_size(t->type);
    const size_t divisor = ggml_blck_size(t->type) > 1 ? size & (~size + 1) : 16;
    const size_t alignment = divisor < 16 ? divisor : 16;
    bool wide = ggml_rows_dense(t) && (uintptr_t)t->data % alignment == 0;
    for (int d = 1; d < GGML_MAX_DIMS && wide; ++d)
        wide = t->ne[d] == 1 || t->nb[d] % alignment == 0;
    return wide;
}

// Whether every row begins at a multiple of `size` bytes, a power of two. The memory of plans has
// its place already; elsewhere only the strides are looked at.
static inline bool gpu_rows_aligned(const struct ggml_tensor *t, size_t size) {
    bool aligned = (uintptr_t)t->data % size == 0;
    for (int d = 1; d < GGML_MAX_DIMS; ++d)
        aligned = aligned && (t->ne[d] == 1 || t->nb[d] % size == 0);
    return aligned;
}

// Groups of `size` that n things need.
static inline uint64_t gpu_groups_of(uint64_t n, uint64_t size) {
    return (n + size - 1) / size;
}

#endif
