// SPDX-License-Identifier: MIT
// Work memory of flash_attn_ext; shared with the work function.
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include "ggml-shape.h"

// Few queries, see attention_few.c.
enum {
    ATTENTION_QUERIES = 64,        // query rows that share rows of K and V
    ATTENTION_KEYS = 64,           // rows of K and V per block, at most
    ATTENTION_ROW_BYTES = 1024,    // of each of so many rows; of more bytes, half as many
    ATTENTION_STREAM_BYTES = 4096, // of a token's keys, or values, that are read together, at most
    ATTENTION_CHUNK = 256,         // rows of K and V that a thread takes at a time, at least
    ATTENTION_MAX_CHUNKS = 64,     // of a head
    ATTENTION_HEADER = 16, // floats before the sums of a row: the largest score, the weights' sum
};

// Many queries, see attention_many.c.
enum {
    ATTENTION_MANY = 16,       // rows from which on it is worth it
    ATTENTION_ROWS = 192,      // query rows of a tile, half as many where rows are long
    ATTENTION_BLOCK = 128,     // rows of K and V per block, likewise
    ATTENTION_SHORT = 128,     // elements of rows that are not long
    ATTENTION_MAX_SIZE = 1024, // elements of a row of K or V, at most
    ATTENTION_MAX_PANEL = 48,  // query rows whose scores are computed together
    ATTENTION_APART = 16,      // floats between rows of V
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

// Tiles and blocks of attention_many.c stay in the second-level cache.
static inline int attention_many_share(const struct ggml_tensor *node) {
    return MAX(node->src[1]->ne[0], node->src[2]->ne[0]) > ATTENTION_SHORT ? 2 : 1;
}

static inline int attention_many_rows(const struct ggml_tensor *node) {
    return ATTENTION_ROWS / attention_many_share(node);
}

static inline int attention_many_keys(const struct ggml_tensor *node) {
    return ATTENTION_BLOCK / attention_many_share(node);
}

// Rows of K and V that one thread takes at a time, so that there is work for many threads where
// there are few queries; from the shape alone, as above. All of them where a head has enough rows.
static inline int64_t attention_chunk(const struct ggml_tensor *node) {
    const int64_t n_keys = node->src[1]->ne[1];
    if (node->src[0]->ne[1] * attention_group(node) > ATTENTION_QUERIES) return MAX(n_keys, 1);
    const int64_t share = (n_keys + ATTENTION_MAX_CHUNKS - 1) / ATTENTION_MAX_CHUNKS;
    return MAX((share + ATTENTION_KEYS - 1) / ATTENTION_KEYS * ATTENTION_KEYS, ATTENTION_CHUNK);
}

static inline int64_t attention_chunks(const struct ggml_tensor *node) {
    const int64_t chunk = attention_chunk(node);
    return MAX((node->src[1]->ne[1] + chunk - 1) / chunk, 1);
}

// Groups of heads that take turns for each block of keys, so that what lies side by side is read as
// one stream: even parts of all groups.
static inline int64_t attention_together(const struct ggml_tensor *node) {
    const struct ggml_tensor *k = node->src[1], *v = node->src[2];
    const size_t bytes = MAX(ggml_row_size(k->type, k->ne[0]), ggml_row_size(v->type, v->ne[0]));
    const int64_t groups = MAX(MAX(k->ne[2], v->ne[2]), 1);
    const int64_t by_bytes = ATTENTION_STREAM_BYTES / (int64_t)MAX(bytes, 1);
    const int64_t by_rows = ATTENTION_QUERIES / MAX(node->src[0]->ne[1] * attention_group(node), 1);
    const int64_t most = MAX(MIN(by_bytes, by_rows), 1), parts = (groups + most - 1) / most;
    return (groups + parts - 1) / parts;
}

// Keys of a block.
static inline int attention_block(const struct ggml_tensor *node) {
    const struct ggml_tensor *k = node->src[1], *v = node->src[2];
    const size_t bytes = MAX(ggml_row_size(k->type, k->ne[0]), ggml_row_size(v->type, v->ne[0]));
    const bool is_wide = attention_together(node) * (int64_t)bytes > ATTENTION_ROW_BYTES;
    return is_wide ? ATTENTION_KEYS / 2 : ATTENTION_KEYS;
}

// Floats of what a row of queries sums over a chunk.
static inline int64_t attention_part(const struct ggml_tensor *node) {
    return ATTENTION_HEADER + attention_padded(node->src[2]->ne[0]);
}

// Floats before those of the threads: the parts of all rows.
static inline size_t attention_shared_floats(const struct ggml_tensor *node) {
    if (attention_is_many(node)) return 0;
    return (size_t)(ggml_nrows(node->src[0]) * attention_chunks(node) * attention_part(node));
}

// Floats per thread. Few queries: queries, also rounded, scores, mask, and blocks of K and V where
// they are unpacked. Many: blocks of K and V, queries, accumulators, scores, mask and its rows.
static inline size_t attention_work_floats(const struct ggml_tensor *node) {
    const size_t k_size = (size_t)attention_padded(node->src[1]->ne[0]);
    const size_t v_size = (size_t)attention_padded(node->src[2]->ne[0]);
    if (attention_is_many(node)) {
        const size_t rows = (size_t)attention_many_rows(node);
        const size_t block = (size_t)attention_many_keys(node);
        return k_size * (block + rows + ATTENTION_MAX_PANEL) + (v_size + ATTENTION_APART) * block +
               v_size * rows + 3 * block * ATTENTION_MAX_PANEL;
    }
    const bool k_blocks = ggml_is_quantized(node->src[1]->type);
    const bool v_blocks = ggml_is_quantized(node->src[2]->type);
    return ATTENTION_QUERIES * (k_size + k_size / 2 + 1 + 2 * ATTENTION_KEYS) +
           ATTENTION_KEYS * ((k_blocks ? k_size : 0) + (v_blocks ? v_size : 0));
}

#endif
