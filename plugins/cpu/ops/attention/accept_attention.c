// SPDX-License-Identifier: MIT
// What attention.c computes, and its work memory.
#include "ggml-shape.h"
#include "ops/attention/attention.h"
#include "runtime/kernel_list.h"

// Rows of K or V: dense, and a whole number of query heads for each of their heads.
static bool accepts_cache(const struct ggml_tensor *t, const struct ggml_tensor *q) {
    return ggml_rows_dense(t) && t->ne[0] % ggml_blck_size(t->type) == 0 && t->ne[2] > 0 &&
           q->ne[2] % t->ne[2] == 0 && t->ne[3] == q->ne[3];
}

// The mask may be larger than needed, and is repeated over heads and sequences (broadcast).
static bool accepts_mask(const struct ggml_tensor *mask, const struct ggml_tensor *q,
                         const struct ggml_tensor *k) {
    return (mask->type == GGML_TYPE_F16 || mask->type == GGML_TYPE_F32) && ggml_rows_dense(mask) &&
           mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1] && mask->ne[2] > 0 &&
           mask->ne[3] > 0 && q->ne[2] % mask->ne[2] == 0 && q->ne[3] % mask->ne[3] == 0;
}

// Queries, keys and values have the same row length and number of sequences; keys and values may
// have fewer heads (grouped-query attention). The result has heads and queries exchanged.
bool cpu_accepts_flash_attn(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *v = node->src[2];
    const struct ggml_tensor *mask = node->src[3];
    const struct ggml_tensor *sinks = node->src[4];
    if (!accepts_cache(k, q) || !accepts_cache(v, q) || (mask && !accepts_mask(mask, q, k)))
        return false;
    if (sinks &&
        !(sinks->type == GGML_TYPE_F32 && ggml_is_packed(sinks) && sinks->ne[0] >= q->ne[2])) {
        return false;
    }
    return ggml_rows_dense(q) && ggml_rows_dense(node) && k->ne[0] == q->ne[0] &&
           v->ne[1] >= k->ne[1] && node->ne[0] == v->ne[0] && node->ne[1] == q->ne[2] &&
           node->ne[2] == q->ne[1] && node->ne[3] == q->ne[3];
}

// A block of queries, scores and sums per thread, and the sums of chunks of keys.
size_t cpu_work_flash_attn(const struct ggml_tensor *node, int n_threads) {
    const size_t threads = attention_work_floats(node) * (size_t)n_threads;
    return (attention_shared_floats(node) + threads) * sizeof(float);
}

// Two products per query, key and channel.
int64_t cpu_cost_flash_attn(const struct ggml_tensor *node) {
    const double cost = 2.0 * (double)ggml_nelements(node) * (double)node->src[1]->ne[1];
    return cost < 1e18 ? (int64_t)cost : INT64_MAX;
}
