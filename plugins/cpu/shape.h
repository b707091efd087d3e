// SPDX-License-Identifier: MIT
// Questions about the layout of tensors that accept functions and kernels ask.
#ifndef CPU_SHAPE_H
#define CPU_SHAPE_H

#include "ggml-impl.h"

// Elements per block and bytes per block of a type; 0 for numbers that stand for no type.
struct cpu_type_size {
    int64_t block;
    size_t size;
};

static inline struct cpu_type_size cpu_type_size(enum ggml_type type) {
    static const struct cpu_type_size sizes[GGML_TYPE_COUNT] = {
#define GGML_TYPE_ROW(number, name, text, block, size, quantized) [number] = {block, size},
#include "type_list.inl"
    };
    const struct cpu_type_size none = {0, 0};
    return (unsigned)type < GGML_TYPE_COUNT ? sizes[type] : none;
}

static inline int64_t cpu_nelements(const struct ggml_tensor *t) {
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

static inline int64_t cpu_nrows(const struct ggml_tensor *t) {
    return t->ne[1] * t->ne[2] * t->ne[3];
}

static inline bool cpu_same_shape(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->ne[0] == b->ne[0] && a->ne[1] == b->ne[1] && a->ne[2] == b->ne[2] &&
           a->ne[3] == b->ne[3];
}

// Whether the elements of each row lie side by side.
static inline bool cpu_rows_dense(const struct ggml_tensor *t) {
    return t->nb[0] == cpu_type_size(t->type).size;
}

static inline bool cpu_contiguous(const struct ggml_tensor *t) {
    const struct cpu_type_size type = cpu_type_size(t->type);
    size_t next = type.size;
    if (type.block == 0 || t->ne[0] % type.block != 0) return false;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (t->ne[d] != 1 && t->nb[d] != next) return false;
        next *= (size_t)(d == 0 ? t->ne[0] / type.block : t->ne[d]);
    }
    return true;
}

// Whether b, tiled, covers a.
static inline bool cpu_can_repeat(const struct ggml_tensor *b, const struct ggml_tensor *a) {
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (b->ne[d] == 0 ? a->ne[d] != 0 : a->ne[d] % b->ne[d] != 0) return false;
    }
    return true;
}

// The indices of row `row` of a tensor whose rows are counted with dim 1 fastest.
struct cpu_row {
    int64_t i1, i2, i3;
};

static inline struct cpu_row cpu_row_at(const struct ggml_tensor *t, int64_t row) {
    const int64_t i1 = row % t->ne[1];
    const int64_t above = row / t->ne[1];
    return (struct cpu_row){i1, above % t->ne[2], above / t->ne[2]};
}

static inline char *cpu_row_data(const struct ggml_tensor *t, struct cpu_row at) {
    return (char *)t->data + (size_t)at.i1 * t->nb[1] + (size_t)at.i2 * t->nb[2] +
           (size_t)at.i3 * t->nb[3];
}

// The row of a tensor that is repeated along the dims above 0.
static inline char *cpu_row_data_repeated(const struct ggml_tensor *t, struct cpu_row at) {
    return cpu_row_data(t, (struct cpu_row){at.i1 % t->ne[1], at.i2 % t->ne[2], at.i3 % t->ne[3]});
}

#endif
