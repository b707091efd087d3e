// SPDX-License-Identifier: MIT
// How mul_mat and mul_mat_id lay out their work memory; shared with the work functions.
#ifndef CPU_MUL_MAT_H
#define CPU_MUL_MAT_H

#include "gemm/gemm_size.h"
#include "ggml-shape.h"
#include "ops/mul_mat/rounded/rounded.h"

enum { MUL_MAT_LINE = 64 }; // bytes; keeps threads on cache lines of their own

static inline size_t mul_mat_pad(size_t size) {
    return (size + MUL_MAT_LINE - 1) / MUL_MAT_LINE * MUL_MAT_LINE;
}

// src1 is computed with as it lies, or first copied as F32.
static inline bool mul_mat_packs(const struct ggml_tensor *b) {
    return b->type != GGML_TYPE_F32 || b->nb[0] != sizeof(float);
}

static inline size_t mul_mat_pack_size(const struct ggml_tensor *b) {
    return mul_mat_packs(b) ? mul_mat_pad((size_t)ggml_nelements(b) * sizeof(float)) : 0;
}

// Columns that share a matrix of src0: j fastest, then the broadcast dims.
static inline int64_t mul_mat_columns(const struct ggml_tensor *dst) {
    const int64_t matrices = dst->src[0]->ne[2] * dst->src[0]->ne[3];
    return matrices > 0 ? ggml_nrows(dst->src[1]) / matrices : 0;
}

// The most columns that may share an expert.
static inline int64_t mul_mat_id_columns(const struct ggml_tensor *dst) {
    return dst->src[2]->ne[0] * dst->src[2]->ne[1];
}

// Floats of a thread to multiply up to n_columns columns that share a matrix.
static inline size_t mul_mat_thread_floats(int64_t n_columns, int64_t k) {
    const size_t few = (size_t)GEMM_MAX_ROWS * GEMM_DEPTH;
    const size_t many = gemm_packed_floats(n_columns, k);
    return n_columns < PACKED_MIN_COLUMNS || few > many ? few : many;
}

// Bytes of a thread of a product, up to n_columns of whose columns share a matrix.
static inline size_t mul_mat_thread_size(const struct ggml_tensor *dst, int64_t n_columns) {
    const int64_t k = dst->src[0]->ne[0];
    const size_t floats = mul_mat_pad(mul_mat_thread_floats(n_columns, k) * sizeof(float));
    const size_t rounded = rounds_few(dst) ? rounded_size_most(k, n_columns) : 0;
    return floats > rounded ? floats : rounded;
}

// src1 as strips, by matrix of src0: bytes.
static inline size_t mul_mat_strips_size(const struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0];
    const int64_t n_columns = mul_mat_columns(dst);
    if (!rounds_many(dst) || n_columns <= ROUNDED_COLUMNS) return 0;
    return (size_t)(a->ne[2] * a->ne[3] * strips_across(n_columns) * strips_deep(a->ne[0])) *
           (size_t)most_strip_parts(a->type) * sizeof(struct strip);
}

// Bytes of a thread of mul_mat_id: where it rounds many columns, it does so a part of the depth at
// a time, for itself; a panel follows.
static inline size_t mul_mat_id_thread_size(const struct ggml_tensor *dst) {
    int64_t n_columns = mul_mat_id_columns(dst);
    const size_t size = mul_mat_thread_size(dst, n_columns);
    if (!rounds_many(dst) || n_columns <= ROUNDED_COLUMNS) return size;
    n_columns = n_columns < PACKED_COLUMNS ? n_columns : PACKED_COLUMNS;
    const int64_t across = strips_across(n_columns) * most_strip_parts(dst->src[0]->type);
    const int64_t all = across * strips_deep(dst->src[0]->ne[0]);
    const int64_t most = (int64_t)(STRIPS_SIZE / sizeof(struct strip)) + across;
    const size_t strips =
        (size_t)(all < most ? all : most) * sizeof(struct strip) + sizeof(struct strip_panel);
    return size > strips ? size : strips;
}

// mul_mat_id: a slot of a token.
struct mul_mat_pair {
    int32_t slot;
    int32_t token;
};

// Offsets into the work memory of mul_mat_id; panels follow.
struct mul_mat_id_layout {
    size_t starts; // int64_t per expert and one: first pair, sorted by expert
    size_t ids;    // int32_t per slot and token: src2, which others may change meanwhile
    size_t pairs;  // struct mul_mat_pair per slot and token
    size_t packed; // src1 as F32
    size_t panels;
};

// Layout of the work memory: counts per expert, rows of ids, pairs ordered by expert, packed
// columns, and panels of the threads. Every part begins at a cache line.
static inline struct mul_mat_id_layout mul_mat_id_layout(const struct ggml_tensor *dst) {
    const size_t n_pairs = (size_t)mul_mat_id_columns(dst);
    struct mul_mat_id_layout layout = {0};
    layout.ids = mul_mat_pad(((size_t)dst->src[0]->ne[2] + 2) * sizeof(int64_t));
    layout.pairs = layout.ids + mul_mat_pad(n_pairs * sizeof(int32_t));
    layout.packed = layout.pairs + mul_mat_pad(n_pairs * sizeof(struct mul_mat_pair));
    layout.panels = layout.packed + mul_mat_pack_size(dst->src[1]);
    return layout;
}

#endif
