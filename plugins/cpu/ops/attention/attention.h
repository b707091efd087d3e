// SPDX-License-Identifier: MIT
// Work memory of flash_attn_ext; shared with the work function.
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include "gemm/gemm_size.h"
#include "ggml-shape.h"

enum {
    ATTENTION_QUERIES = 32,         // query rows that share an unpacked block of K and V
    ATTENTION_KEYS = GEMM_MAX_ROWS, // rows of K and V per block
};

// Many queries, see attention_many.c.
enum {
    ATTENTION_MANY = 8,        // rows from which on it is worth it
    ATTENTION_ROWS = 96,       // query rows of a tile
    ATTENTION_BLOCK = 64,      // rows of K and V per block
    ATTENTION_MAX_SIZE = 1024, // elements of a row of K or V, at most
};

// To whole vectors of any level.
static inline int64_t attention_padded(int64_t size) {
    return (size + 15) / 16 * 16;
}

// Query heads that share a head of K and one of V.
static inline int64_t attention_group(const struct ggml_tensor *node) {
    const int64_t n_heads = node->src[0]->ne[2];
    const int64_t per_k = n_heads / node->src[1]->ne[2];
    const int64_t per_v = n_heads / node->src[2]->ne[2];
    const int64_t smaller = MIN(per_k, per_v);
    return smaller > 0 && MAX(per_k, per_v) % smaller == 0 ? smaller : 1;
}

// Whether the node is computed by attention_many.c. Depends on nothing but the shape, so that
// results do not either.
static inline bool attention_is_many(const struct ggml_tensor *node) {
    return node->src[1]->ne[0] <= ATTENTION_MAX_SIZE && node->src[2]->ne[0] <= ATTENTION_MAX_SIZE &&
           node->src[0]->ne[1] >= (ATTENTION_MANY - 1) / attention_group(node) + 1;
}

// Floats per thread. Few queries: panel of K, block of V, scores, mask, accumulators. Many: blocks
// of K and V, queries, accumulators, scores, mask and its rows.
static inline size_t attention_work_floats(const struct ggml_tensor *node) {
    const size_t v_size = (size_t)attention_padded(node->src[2]->ne[0]);
    if (attention_is_many(node)) {
        const size_t k_size = (size_t)attention_padded(node->src[1]->ne[0]);
        return (k_size + v_size) * (ATTENTION_BLOCK + ATTENTION_ROWS) +
               3 * (size_t)ATTENTION_BLOCK * ATTENTION_ROWS;
    }
    return (size_t)ATTENTION_KEYS * GEMM_DEPTH + 2 * (size_t)ATTENTION_QUERIES * ATTENTION_KEYS +
           v_size * (ATTENTION_KEYS + ATTENTION_QUERIES);
}

#endif
