// SPDX-License-Identifier: MIT
// The key holds all that planning looks at, as words: comparing two keys is one memcmp.
// The hash sorts out most recordings before that. Time: linear in nodes and sources.
#include "gpu/graph/graph_key.h"

enum {
    PLACE_WORDS = 2,
    TENSOR_WORDS = 1 + PLACE_WORDS + 2 * GGML_MAX_DIMS,
    PARAMETER_WORDS = GGML_MAX_OP_PARAMS / sizeof(uint64_t),
    NODE_WORDS = 2 + PARAMETER_WORDS + (1 + GGML_MAX_SRC) * TENSOR_WORDS, // at most
    HASH_LANES = 4,
};

// Keeps what is there. Keys grow to the largest graph that was seen and stay so.
static bool reserve(struct gpu_graph_key *key, size_t n) {
    if (n <= key->max) return true;
    uint64_t *words = ggml_aligned_malloc(n * sizeof(*words));
    if (!words) return false;
    if (key->n) memcpy(words, key->words, key->n * sizeof(*words));
    ggml_aligned_free(key->words, key->max * sizeof(*words));
    key->words = words;
    key->max = n;
    return true;
}

// Both words are needed: two buffers may have the same addresses, since a device's base is only a
// number to the host. The low bit tells a view, which may be fused otherwise, from its root.
static uint64_t *put_place(uint64_t *at, const struct ggml_tensor *tensor,
                           uint64_t (*buffer_id)(const struct ggml_tensor *tensor)) {
    *at++ = buffer_id(tensor) << 1 | (tensor->view_src != NULL);
    *at++ = (uintptr_t)tensor->data;
    return at;
}

static uint64_t *put_tensor(uint64_t *at, const struct ggml_tensor *tensor,
                            uint64_t (*buffer_id)(const struct ggml_tensor *tensor)) {
    *at++ = (uint64_t)(uint32_t)tensor->type << 32 | (uint32_t)tensor->flags;
    at = put_place(at, tensor, buffer_id);
    for (int i = 0; i < GGML_MAX_DIMS; ++i)
        *at++ = (uint64_t)tensor->ne[i];
    for (int i = 0; i < GGML_MAX_DIMS; ++i)
        *at++ = (uint64_t)tensor->nb[i];
    return at;
}

// The number of uses and the sources decide on what is fused.
static uint64_t *put_node(uint64_t *at, const struct ggml_graph *graph, int i,
                          uint64_t (*buffer_id)(const struct ggml_tensor *tensor)) {
    const struct ggml_tensor *node = graph->nodes[i];
    uint64_t sources = 0;
    for (int s = 0; s < GGML_MAX_SRC; ++s)
        sources |= (uint64_t)(node->src[s] != NULL) << s;
    *at++ = (uint64_t)(uint32_t)node->op << 32 | sources;
    *at++ = (uint64_t)(uint32_t)graph->use_counts[i];
    memcpy(at, node->op_params, PARAMETER_WORDS * sizeof(*at));
    at = put_tensor(at + PARAMETER_WORDS, node, buffer_id);
    for (int s = 0; s < GGML_MAX_SRC; ++s) {
        if (node->src[s]) at = put_tensor(at, node->src[s], buffer_id);
    }
    return at;
}

// In lanes that don't wait for each other's products.
static uint64_t hash_words(const uint64_t *words, size_t n) {
    // 2^64 over the golden ratio, odd: multiplying loses no bit, and the shifts bring high bits
    // down.
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t lanes[HASH_LANES], hash = n;
    for (int k = 0; k < HASH_LANES; ++k)
        lanes[k] = (uint64_t)k * factor;
    size_t i = 0;
    for (; i + HASH_LANES <= n; i += HASH_LANES) {
        for (int k = 0; k < HASH_LANES; ++k) {
            lanes[k] = (lanes[k] ^ words[i + (size_t)k]) * factor;
            lanes[k] ^= lanes[k] >> 29;
        }
    }
    for (; i < n; ++i)
        lanes[i % HASH_LANES] = (lanes[i % HASH_LANES] ^ words[i]) * factor;
    for (int k = 0; k < HASH_LANES; ++k)
        hash = ((hash ^ lanes[k]) * factor) ^ (lanes[k] >> 29);
    return hash;
}

bool gpu_graph_key_make(struct gpu_graph_key *key, const struct ggml_graph *graph,
                        uint64_t (*buffer_id)(const struct ggml_tensor *tensor)) {
    key->n = 0;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (key->max - key->n < NODE_WORDS && !reserve(key, 2 * key->max + 16 * NODE_WORDS))
            return false;
        // A node that moves no data still has uses that decide on fusion.
        uint64_t *at = key->words + key->n;
        if (ggml_op_is_empty(node->op)) {
            *at++ = (uint64_t)(uint32_t)node->op << 32 | (uint32_t)node->flags;
            *at++ = (uint64_t)(uint32_t)graph->use_counts[i];
        } else {
            at = put_node(at, graph, i, buffer_id);
        }
        key->n = (size_t)(at - key->words);
    }
    key->hash = hash_words(key->words, key->n);
    return true;
}

bool gpu_graph_key_make_places(struct gpu_graph_key *key, const struct ggml_graph *graph,
                               uint64_t (*buffer_id)(const struct ggml_tensor *tensor)) {
    key->n = 0;
    if (!reserve(key, 16)) return false;
    key->words[key->n++] = graph->structure;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (ggml_op_is_empty(node->op)) continue;
        if (key->max - key->n < (1 + GGML_MAX_SRC) * PLACE_WORDS &&
            !reserve(key, 2 * key->max + (1 + GGML_MAX_SRC) * PLACE_WORDS)) {
            return false;
        }
        uint64_t *at = put_place(key->words + key->n, node, buffer_id);
        for (int s = 0; s < GGML_MAX_SRC; ++s) {
            if (node->src[s]) at = put_place(at, node->src[s], buffer_id);
        }
        key->n = (size_t)(at - key->words);
    }
    key->hash = hash_words(key->words, key->n);
    return true;
}

// Words decide: a hash of 64 bits may be that of another graph, and a wrong recording computes
// something else without a word.
bool gpu_graph_key_equal(const struct gpu_graph_key *a, const struct gpu_graph_key *b) {
    return a->hash == b->hash && a->n == b->n &&
           (a->n == 0 || memcmp(a->words, b->words, a->n * sizeof(*a->words)) == 0);
}

bool gpu_graph_key_copy(struct gpu_graph_key *out_copy, const struct gpu_graph_key *key) {
    out_copy->n = 0;
    out_copy->hash = 0;
    if (key->n == 0) return true;
    if (!reserve(out_copy, key->n)) return false;
    memcpy(out_copy->words, key->words, key->n * sizeof(*key->words));
    out_copy->n = key->n;
    out_copy->hash = key->hash;
    return true;
}

void gpu_graph_key_free(struct gpu_graph_key *key) {
    ggml_aligned_free(key->words, key->max * sizeof(*key->words));
    *key = (struct gpu_graph_key){0};
}
