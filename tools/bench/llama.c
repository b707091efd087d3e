// SPDX-License-Identifier: MIT
// Matrices of the type, vectors of F32 and a cache of keys and values in F16, all in one buffer of
// weights; graphs for any number of tokens.
#include "bench/llama.h"

#include <math.h>
#include <stdlib.h>

#include "ggml-alloc.h"

const struct llama_shape llama_shapes[] = {
    {"0.2B", 12, 1024, 16, 4, 2816, 32000},
    {"1B", 16, 2048, 32, 8, 8192, 32000},
    {"8B", 32, 4096, 32, 8, 14336, 128256},
    {0},
};

enum { LAYER_TENSORS = 11, LAYER_NODES = 40 };

// --- weights

static struct ggml_tensor *matrix(struct llama *llama, enum ggml_type type, int n_in, int n_out) {
    struct ggml_tensor *t = ggml_new_tensor_2d(llama->ctx, type, n_in, n_out);
    llama->weight_bytes += ggml_nbytes(t);
    llama->flops += 2.0 * n_in * n_out;
    return t;
}

static struct ggml_tensor *vector(struct llama *llama, int n) {
    return ggml_new_tensor_1d(llama->ctx, GGML_TYPE_F32, n);
}

// All weights of the model, and a cache for `capacity` tokens.
static void define(struct llama *llama, enum ggml_type type) {
    const struct llama_shape *s = &llama->shape;
    const int kv_width = s->width / s->heads * s->kv_heads;
    llama->embedding = ggml_new_tensor_2d(llama->ctx, type, s->width, s->vocabulary);
    for (int i = 0; i < s->layers; ++i) {
        llama->layers[i] = (struct llama_layer){
            .norm1 = vector(llama, s->width),
            .wq = matrix(llama, type, s->width, s->width),
            .wk = matrix(llama, type, s->width, kv_width),
            .wv = matrix(llama, type, s->width, kv_width),
            .wo = matrix(llama, type, s->width, s->width),
            .norm2 = vector(llama, s->width),
            .gate = matrix(llama, type, s->width, s->hidden),
            .up = matrix(llama, type, s->width, s->hidden),
            .down = matrix(llama, type, s->hidden, s->width),
            .k = ggml_new_tensor_2d(llama->ctx, GGML_TYPE_F16, kv_width, llama->capacity),
            .v = ggml_new_tensor_2d(llama->ctx, GGML_TYPE_F16, kv_width, llama->capacity),
        };
    }
    llama->norm = vector(llama, s->width);
    llama->output = matrix(llama, type, s->width, s->vocabulary);
}

// False without memory, or where rows are no whole blocks of the type. llama_free() takes it
// half made, too.
bool llama_init(struct llama *llama, const struct llama_shape *shape, enum ggml_type type,
                int capacity, ggml_backend_buffer_type_t buft) {
    const struct ggml_init_params params = {
        .mem_size = ((size_t)shape->layers * LAYER_TENSORS + 8) * ggml_tensor_overhead(),
        .no_alloc = true,
    };
    *llama = (struct llama){.shape = *shape, .capacity = capacity};
    const int64_t block = ggml_blck_size(type);
    if (shape->width % block != 0 || shape->hidden % block != 0) return false;
    llama->ctx = ggml_init(params);
    llama->layers = calloc((size_t)shape->layers, sizeof(llama->layers[0]));
    if (!llama->ctx || !llama->layers) return false;
    define(llama, type);
    llama->buffer = ggml_backend_alloc_ctx_tensors_from_buft(llama->ctx, buft);
    if (!llama->buffer) return false;
    ggml_backend_buffer_set_usage(llama->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_buffer_clear(llama->buffer, 0x3c); // about one in halves, small in floats
    return true;
}

void llama_free(struct llama *llama) {
    ggml_backend_buffer_free(llama->buffer);
    ggml_free(llama->ctx);
    free(llama->layers);
}

// --- graph

struct build {
    struct llama_graph *graph;
    struct ggml_context *ctx;
    const struct llama *llama;
    int head;
};

static struct ggml_tensor *heads(const struct build *b, struct ggml_tensor *x, int n_heads) {
    struct ggml_tensor *y = ggml_reshape_3d(b->ctx, x, b->head, n_heads, b->graph->n_tokens);
    return ggml_rope(b->ctx, y, b->graph->positions, b->head, GGML_ROPE_TYPE_NEOX);
}

static void store(const struct build *b, struct ggml_tensor *x, struct ggml_tensor *cache) {
    struct ggml_tensor *flat = ggml_reshape_2d(b->ctx, x, cache->ne[0], b->graph->n_tokens);
    ggml_build_forward_expand(b->graph->graph, ggml_set_rows(b->ctx, cache, flat, b->graph->rows));
}

// The cache so far: [head, tokens, heads].
static struct ggml_tensor *cached(const struct build *b, struct ggml_tensor *cache) {
    const int64_t n = b->graph->mask->ne[0];
    struct ggml_tensor *view =
        ggml_view_3d(b->ctx, cache, b->head, n, b->llama->shape.kv_heads, cache->nb[1],
                     (size_t)b->head * ggml_element_size(cache), 0);
    return view;
}

static struct ggml_tensor *normed(struct ggml_context *ctx, struct ggml_tensor *x,
                                  struct ggml_tensor *weight) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), weight);
}

static struct ggml_tensor *add_layer(const struct build *b, const struct llama_layer *layer,
                                     struct ggml_tensor *x) {
    const struct llama_shape *s = &b->llama->shape;
    struct ggml_context *ctx = b->ctx;
    struct ggml_tensor *h = normed(ctx, x, layer->norm1);
    struct ggml_tensor *q = heads(b, ggml_mul_mat(ctx, layer->wq, h), s->heads);
    store(b, heads(b, ggml_mul_mat(ctx, layer->wk, h), s->kv_heads), layer->k);
    store(b, ggml_mul_mat(ctx, layer->wv, h), layer->v);
    struct ggml_tensor *y = ggml_flash_attn_ext(ctx, ggml_permute(ctx, q, 0, 2, 1, 3),
                                                cached(b, layer->k), cached(b, layer->v),
                                                b->graph->mask, 1.0f / sqrtf((float)b->head), 0, 0);
    y = ggml_reshape_2d(ctx, y, s->width, b->graph->n_tokens);
    x = ggml_add(ctx, x, ggml_mul_mat(ctx, layer->wo, y));
    h = normed(ctx, x, layer->norm2);
    struct ggml_tensor *gate = ggml_mul_mat(ctx, layer->gate, h);
    h = ggml_swiglu_split(ctx, gate, ggml_mul_mat(ctx, layer->up, h));
    return ggml_add(ctx, x, ggml_mul_mat(ctx, layer->down, h));
}

static struct ggml_tensor *input(struct ggml_tensor *t) {
    ggml_set_input(t);
    return t;
}

// Logits of the last token only, as programs ask for them.
bool llama_graph_init(struct llama_graph *graph, const struct llama *llama, int n_tokens,
                      int n_past) {
    const struct llama_shape *s = &llama->shape;
    const size_t n_nodes = (size_t)s->layers * LAYER_NODES + 32;
    const struct ggml_init_params params = {
        .mem_size = n_nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_nodes, false),
        .no_alloc = true,
    };
    *graph = (struct llama_graph){.ctx = ggml_init(params), .n_tokens = n_tokens, .n_past = n_past};
    struct ggml_context *ctx = graph->ctx;
    graph->graph = ctx ? ggml_new_graph_custom(ctx, n_nodes, false) : NULL;
    if (!graph->graph) return false;
    graph->tokens = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens));
    graph->positions = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens));
    graph->rows = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I64, n_tokens));
    graph->mask = input(ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_past + n_tokens, n_tokens));
    const struct build b = {graph, ctx, llama, s->width / s->heads};
    struct ggml_tensor *x = ggml_get_rows(ctx, llama->embedding, graph->tokens);
    for (int i = 0; i < s->layers; ++i)
        x = add_layer(&b, &llama->layers[i], x);
    x = ggml_view_2d(ctx, x, s->width, 1, x->nb[1], (size_t)(n_tokens - 1) * x->nb[1]);
    x = ggml_mul_mat(ctx, llama->output, normed(ctx, x, llama->norm));
    ggml_set_output(x);
    ggml_build_forward_expand(graph->graph, x);
    return true;
}

void llama_graph_set_inputs(const struct llama_graph *graph) {
    const int64_t n_kv = graph->mask->ne[0];
    const ggml_fp16_t hidden = ggml_fp32_to_fp16(-INFINITY);
    ggml_fp16_t *row = calloc((size_t)n_kv, sizeof(*row));
    for (int i = 0; i < graph->n_tokens && row; ++i) {
        const int64_t place = graph->n_past + i;
        const int32_t token = i, position = (int32_t)place;
        for (int64_t k = 0; k < n_kv; ++k)
            row[k] = k > place ? hidden : 0;
        ggml_backend_tensor_set(graph->tokens, &token, (size_t)i * sizeof(token), sizeof(token));
        ggml_backend_tensor_set(graph->positions, &position, (size_t)i * sizeof(position),
                                sizeof(position));
        ggml_backend_tensor_set(graph->rows, &place, (size_t)i * sizeof(place), sizeof(place));
        ggml_backend_tensor_set(graph->mask, row, (size_t)i * graph->mask->nb[1],
                                (size_t)n_kv * sizeof(*row));
    }
    free(row);
}

void llama_graph_free(struct llama_graph *graph) {
    ggml_free(graph->ctx);
}
