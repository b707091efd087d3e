// SPDX-License-Identifier: MIT
// A generated transformer: grouped-query attention, rotary positions, a mask, a key-value cache
// that is written and read through views, and dense or expert layers. Weights and inputs depend on
// seeds only.
#ifndef GGML_TESTS_TRANSFORMER_H
#define GGML_TESTS_TRANSFORMER_H

#include "ggml-backend.h"

struct transformer_shape {
    int layers;
    int width; // heads * head size
    int heads;
    int kv_heads;
    int hidden;
    int vocabulary;
    int capacity;        // of the cache, in tokens
    int experts;         // 0: dense layers; else one of so many per token
    enum ggml_type type; // of the matrices
};

// A dense one of four layers, in F16.
extern const struct transformer_shape transformer_small;

struct transformer_layer {
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *norm1, *wq, *wk, *wv, *wo;
    struct ggml_tensor *norm2, *router, *gate, *up, *down;
    struct ggml_tensor *k_cache, *v_cache; // [kv width, capacity]
    struct ggml_context *cache_ctx;
    ggml_backend_buffer_t cache_buffer;
};

struct transformer {
    struct transformer_shape shape;
    struct transformer_layer *layers;
    struct ggml_context *input_ctx, *output_ctx;
    ggml_backend_buffer_t input_buffer, output_buffer;
    struct ggml_tensor *embedding, *norm, *output;
};

// A graph for n_tokens that follow n_past ones in the cache.
struct transformer_graph {
    int n_tokens, n_past;
    struct ggml_context *ctx; // of its tensors, without data
    struct ggml_cgraph *graph;
    struct ggml_tensor *tokens, *positions, *mask; // inputs
    struct ggml_tensor *logits;                    // [vocabulary, tokens], an output
};

// Where the weights of layer i go; i == layers: what belongs to no layer. NULL: stays without
// memory.
typedef ggml_backend_buffer_type_t (*transformer_place_t)(void *user, int layer);

// The model with weights placed and set; the cache lies in cache_place's memory (NULL: as the
// weights). NULL on failure.
struct transformer *transformer_new(const struct transformer_shape *shape, uint64_t seed,
                                    transformer_place_t place, transformer_place_t cache_place,
                                    void *user);
void transformer_free(struct transformer *model);
// Sets every element of the cache to 0.
void transformer_clear_cache(struct transformer *model);

// A callback of ggml_backend_meta_device(): splits weights and cache by heads, hidden units and
// words over 1 to 4 devices, whose number the int is that user points to. The shape's kv_heads,
// and its hidden units by 32, are multiples of 4.
struct ggml_backend_meta_split_state transformer_split(const struct ggml_tensor *tensor,
                                                       void *user);

// false when memory runs out.
bool transformer_graph_build(struct transformer *model, int n_tokens, int n_past,
                             struct transformer_graph *out_graph);
void transformer_graph_free(struct transformer_graph *graph);
// The graph must be allocated.
void transformer_set_inputs(const struct transformer *model, const struct transformer_graph *graph,
                            uint64_t seed);

#endif
