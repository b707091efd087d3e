// SPDX-License-Identifier: MIT
// Layers that carry a state from token to token instead of attending to all of them; and what all
// layers are built with.
#ifndef BENCH_RECURRENT_H
#define BENCH_RECURRENT_H

#include "bench/tokens/llama.h"

// Of one sequence; states stand last.
struct mamba2 {
    struct ggml_tensor *norm, *in, *filter, *filter_bias, *step_bias, *rate, *skip, *gate_norm,
        *out;
    struct ggml_tensor *inputs, *state;
};

// Two matrices, between which there are few numbers, and a vector that is added.
struct low_rank {
    struct ggml_tensor *down, *up, *bias;
};

struct rwkv7 {
    struct ggml_tensor *norm1, *mix, *r, *k, *v, *out;
    struct low_rank decay, rate, value, gate; // a gate has no vector
    struct ggml_tensor *k_length, *k_rate, *bonus, *heads_norm, *heads_bias;
    struct ggml_tensor *norm2, *mix2, *up, *down;
    struct ggml_tensor *before1, *before2, *state;
};

struct llama_recurrent {
    enum llama_kind kind;
    struct mamba2 mamba2;
    struct rwkv7 rwkv7;
};

// A graph that is being built.
struct llama_build {
    struct llama_graph *graph;
    struct ggml_context *ctx;
    const struct llama *llama;
    int head;                   // numbers of one
    struct ggml_tensor *values; // of the first layer, which RWKV 7 mixes with later ones
};

// A matrix that every token is multiplied with, and a vector of F32.
struct ggml_tensor *llama_matrix(struct llama *llama, enum ggml_type type, int n_in, int n_out);
struct ggml_tensor *llama_vector(struct llama *llama, int n);
// Rows of x at length one, times a vector.
struct ggml_tensor *llama_normed(struct ggml_context *ctx, struct ggml_tensor *x,
                                 struct ggml_tensor *weight);

// The weights and states of a layer, their values once they are allocated, and its nodes.
void llama_define_recurrent(struct llama *llama, enum ggml_type type,
                            struct llama_recurrent *out_layer);
void llama_fill_recurrent(const struct llama_recurrent *layer);
struct ggml_tensor *llama_add_recurrent(struct llama_build *b, const struct llama_recurrent *layer,
                                        struct ggml_tensor *x);

#endif
