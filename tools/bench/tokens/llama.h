// SPDX-License-Identifier: MIT
// Language models with weights of one type: what ggml-bench model computes. The numbers in them
// mean nothing.
#ifndef BENCH_LLAMA_H
#define BENCH_LLAMA_H

#include "ggml-backend.h"

enum llama_kind {
    LLAMA_DENSE,   // attention, and a gated network
    LLAMA_EXPERTS, // attention, and gated networks of which each token takes some
    LLAMA_MAMBA2,  // state-space layers
    LLAMA_RWKV7,   // linear attention, and a network of squares
};

struct llama_shape {
    const char *name;
    int layers, width, heads, kv_heads;
    int hidden; // of networks, or of what passes a state-space layer
    int vocabulary;
    enum llama_kind kind;
    int experts, used; // networks, and how many a token takes
    int state;         // numbers per channel of a state-space layer
};

// The sizes that have names, ended by one without.
extern const struct llama_shape llama_shapes[];

// Those of attention and of networks.
struct llama_layer {
    struct ggml_tensor *norm1, *wq, *wk, *wv, *wo;
    struct ggml_tensor *norm2, *router, *gate, *up, *down;
    struct ggml_tensor *k, *v; // [kv width, capacity], F16
};

struct llama_recurrent; // one of the others: recurrent.h

struct llama {
    struct llama_shape shape;
    int capacity; // of the cache, in tokens
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    struct llama_layer *layers;
    struct llama_recurrent *recurrent; // instead of these
    struct ggml_tensor *embedding, *norm, *output;
    struct ggml_tensor *sequence; // I32, number of the state that is continued: 0
    size_t weight_bytes;          // that every token reads: all but the embedding
    double flops;                 // of the products with weights, per token
};

// n_tokens that follow n_past ones.
struct llama_graph {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *tokens;                  // input
    struct ggml_tensor *positions, *rows, *mask; // inputs of attention, otherwise NULL
    int n_tokens, n_past;
};

// With everything in memory of this type. False when memory runs out, or the shape does not suit
// the type; to be freed then too.
bool llama_init(struct llama *llama, const struct llama_shape *shape, enum ggml_type type,
                int capacity, ggml_backend_buffer_type_t buft);
void llama_free(struct llama *llama);

// False when memory runs out; to be freed then too.
bool llama_graph_init(struct llama_graph *graph, const struct llama *llama, int n_tokens,
                      int n_past);
// The graph must be allocated.
void llama_graph_set_inputs(const struct llama_graph *graph);
void llama_graph_free(struct llama_graph *graph);

#endif
