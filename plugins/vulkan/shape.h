// SPDX-License-Identifier: MIT
// Questions about the layout of tensors that accept and encode functions ask.
#ifndef VK_SHAPE_H
#define VK_SHAPE_H

#include "ggml-impl.h"

// Elements per block and bytes per block of a type; 0 for numbers that stand for no type.
struct vk_type_size {
    int64_t block;
    size_t size;
};

static inline struct vk_type_size vk_type_size(enum ggml_type type) {
    static const struct vk_type_size sizes[GGML_TYPE_COUNT] = {
#define GGML_TYPE_ROW(number, name, text, block, size, quantized) [number] = {block, size},
#include "type_list.inl"
    };
    const struct vk_type_size none = {0, 0};
    return (unsigned)type < GGML_TYPE_COUNT ? sizes[type] : none;
}

static inline uint64_t vk_nelements(const struct ggml_tensor *t) {
    return (uint64_t)(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]);
}

static inline uint64_t vk_nrows(const struct ggml_tensor *t) {
    return (uint64_t)(t->ne[1] * t->ne[2] * t->ne[3]);
}

static inline bool vk_same_shape(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->ne[0] == b->ne[0] && a->ne[1] == b->ne[1] && a->ne[2] == b->ne[2] &&
           a->ne[3] == b->ne[3];
}

// Whether the elements (blocks) of each row lie side by side.
static inline bool vk_rows_dense(const struct ggml_tensor *t) {
    return t->nb[0] == vk_type_size(t->type).size;
}

static inline bool vk_contiguous(const struct ggml_tensor *t) {
    const struct vk_type_size type = vk_type_size(t->type);
    size_t next = type.size;
    if (type.block == 0 || t->ne[0] % type.block != 0) return false;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (t->ne[d] != 1 && t->nb[d] != next) return false;
        next *= (size_t)(d == 0 ? t->ne[0] / type.block : t->ne[d]);
    }
    return true;
}

// Whether b, tiled, covers a.
static inline bool vk_can_repeat(const struct ggml_tensor *b, const struct ggml_tensor *a) {
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (b->ne[d] == 0 ? a->ne[d] != 0 : a->ne[d] % b->ne[d] != 0) return false;
    }
    return true;
}

// Whether each row is dense and begins where 16-byte loads may: at such an address, or with blocks
// where their size permits it.
static inline bool vk_is_wide(const struct ggml_tensor *t) {
    const struct vk_type_size type = vk_type_size(t->type);
    const size_t divisor = type.block > 1 ? type.size & (~type.size + 1) : 16;
    const size_t alignment = divisor < 16 ? divisor : 16;
    bool wide = vk_rows_dense(t) && (uintptr_t)t->data % alignment == 0;
    for (int d = 1; d < GGML_MAX_DIMS && wide; ++d)
        wide = t->ne[d] == 1 || t->nb[d] % alignment == 0;
    return wide;
}

// Whether every row begins at a multiple of `size` bytes, a power of two. The memory of plans has its
// place already; elsewhere only the strides are looked at.
static inline bool vk_rows_aligned(const struct ggml_tensor *t, size_t size) {
    bool aligned = (uintptr_t)t->data % size == 0;
    for (int d = 1; d < GGML_MAX_DIMS; ++d)
        aligned = aligned && (t->ne[d] == 1 || t->nb[d] % size == 0);
    return aligned;
}

// Groups of `size` that n things need.
static inline uint64_t vk_groups_of(uint64_t n, uint64_t size) {
    return (n + size - 1) / size;
}

#endif
