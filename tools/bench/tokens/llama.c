// SPDX-License-Identifier: MIT
// Matrices of the type, vectors of F32 and a cache of keys and values in F16, all in one buffer of
// weights; graphs for any number of tokens. Layers without attention are in recurrent.c.
#include "bench/tokens/llama.h"

#include <math.h>
#include <stdlib.h>

#include "bench/tokens/recurrent.h"
#include "ggml-alloc.h"

// The last three have the sizes of small models, but the experts, of which the smallest that is
// known would fill the memory of many a machine.
const struct llama_shape llama_shapes[] = {
    {"0.2B", 12, 1024, 16, 4, 2816, 32000, .kind = LLAMA_DENSE},
    {"1B", 16, 2048, 32, 8, 8192, 32000, .kind = LLAMA_DENSE},
    {"8B", 32, 4096, 32, 8, 14336, 128256, .kind = LLAMA_DENSE},
    {"moe", 12, 1024, 16, 4, 512, 32000, .kind = LLAMA_EXPERTS, .experts = 32, .used = 4},
    {"mamba2", 24, 768, 24, 1, 1536, 50288, .kind = LLAMA_MAMBA2, .state = 128},
    {"rwkv7", 12, 768, 12, 1, 3072, 65536, .kind = LLAMA_RWKV7},
    {0},
};

enum { LAYER_TENSORS = 40, LAYER_NODES = 128 };

// --- weights

struct ggml_tensor *llama_matrix(struct llama *llama, enum ggml_type type, int n_in, int n_out) {
    struct ggml_tensor *t = ggml_new_tensor_2d(llama->ctx, type, n_in, n_out);
    llama->weight_bytes += ggml_nbytes(t);
    llama->flops += 2.0 * n_in * n_out;
    return t;
}

struct ggml_tensor *llama_vector(struct llama *llama, int n) {
    return ggml_new_tensor_1d(llama->ctx, GGML_TYPE_F32, n);
}

// A matrix of a network, or as many as there are experts, of which a token reads some.
static struct ggml_tensor *network(struct llama *llama, enum ggml_type type, int n_in, int n_out) {
    const struct llama_shape *s = &llama->shape;
    if (s->kind != LLAMA_EXPERTS) return llama_matrix(llama, type, n_in, n_out);
    struct ggml_tensor *t = ggml_new_tensor_3d(llama->ctx, type, n_in, n_out, s->experts);
    llama->weight_bytes += ggml_nbytes(t) / (size_t)s->experts * (size_t)s->used;
    llama->flops += 2.0 * n_in * n_out * s->used;
    return t;
}

// All weights of the model, and a cache for `capacity` tokens.
static void define(struct llama *llama, enum ggml_type type) {
    const struct llama_shape *s = &llama->shape;
    const int kv_width = s->width / s->heads * s->kv_heads;
    llama->embedding = ggml_new_tensor_2d(llama->ctx, type, s->width, s->vocabulary);
    for (int i = 0; i < s->layers; ++i) {
        if (llama->recurrent) {
            llama_define_recurrent(llama, type, &llama->recurrent[i]);
            continue;
        }
        llama->layers[i] = (struct llama_layer){
            .norm1 = llama_vector(llama, s->width),
            .wq = llama_matrix(llama, type, s->width, s->width),
            .wk = llama_matrix(llama, type, s->width, kv_width),
            .wv = llama_matrix(llama, type, s->width, kv_width),
            .wo = llama_matrix(llama, type, s->width, s->width),
            .norm2 = llama_vector(llama, s->width),
            .router =
                s->experts > 0 ? llama_matrix(llama, GGML_TYPE_F32, s->width, s->experts) : NULL,
            .gate = network(llama, type, s->width, s->hidden),
            .up = network(llama, type, s->width, s->hidden),
            .down = network(llama, type, s->hidden, s->width),
            .k = ggml_new_tensor_2d(llama->ctx, GGML_TYPE_F16, kv_width, llama->capacity),
            .v = ggml_new_tensor_2d(llama->ctx, GGML_TYPE_F16, kv_width, llama->capacity),
        };
    }
    llama->norm = llama_vector(llama, s->width);
    llama->output = llama_matrix(llama, type, s->width, s->vocabulary);
    llama->sequence = ggml_new_tensor_1d(llama->ctx, GGML_TYPE_I32, 1);
}

// Any bytes are weights, but states must not grow.
static void fill(const struct llama *llama) {
    ggml_backend_buffer_clear(llama->buffer, 0x3c); // about one in halves, small in floats
    ggml_backend_tensor_memset(llama->sequence, 0, 0, ggml_nbytes(llama->sequence));
    for (int i = 0; llama->recurrent && i < llama->shape.layers; ++i)
        llama_fill_recurrent(&llama->recurrent[i]);
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
    if (shape->kind == LLAMA_DENSE || shape->kind == LLAMA_EXPERTS)
        llama->layers = calloc((size_t)shape->layers, sizeof(llama->layers[0]));
    else
        llama->recurrent = calloc((size_t)shape->layers, sizeof(llama->recurrent[0]));
    if (!llama->ctx || (!llama->layers && !llama->recurrent)) return false;
    define(llama, type);
    llama->buffer = ggml_backend_alloc_ctx_tensors_from_buft(llama->ctx, buft);
    if (!llama->buffer) return false;
    ggml_backend_buffer_set_usage(llama->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    fill(llama);
    return true;
}

void llama_free(struct llama *llama) {
    ggml_backend_buffer_free(llama->buffer);
    ggml_free(llama->ctx);
    free(llama->layers);
    free(llama->recurrent);
}

// --- graph

static struct ggml_tensor *heads(const struct llama_build *b, struct ggml_tensor *x, int n_heads) {
    struct ggml_tensor *y = ggml_reshape_3d(b->ctx, x, b->head, n_heads, b->graph->n_tokens);
    return ggml_rope(b->ctx, y, b->graph->positions, b->head, GGML_ROPE_TYPE_NEOX);
}

static void store(const struct llama_build *b, struct ggml_tensor *x, struct ggml_tensor *cache) {
    struct ggml_tensor *flat = ggml_reshape_2d(b->ctx, x, cache->ne[0], b->graph->n_tokens);
    ggml_build_forward_expand(b->graph->graph, ggml_set_rows(b->ctx, cache, flat, b->graph->rows));
}

// The cache so far: [head, tokens, heads].
static struct ggml_tensor *cached(const struct llama_build *b, struct ggml_tensor *cache) {
    const int64_t n = b->graph->mask->ne[0];
    struct ggml_tensor *view =
        ggml_view_3d(b->ctx, cache, b->head, n, b->llama->shape.kv_heads, cache->nb[1],
                     (size_t)b->head * ggml_element_size(cache), 0);
    return view;
}

struct ggml_tensor *llama_normed(struct ggml_context *ctx, struct ggml_tensor *x,
                                 struct ggml_tensor *weight) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), weight);
}

static struct ggml_tensor *gated(struct ggml_context *ctx, const struct llama_layer *layer,
                                 struct ggml_tensor *h) {
    struct ggml_tensor *gate = ggml_mul_mat(ctx, layer->gate, h);
    h = ggml_swiglu_split(ctx, gate, ggml_mul_mat(ctx, layer->up, h));
    return ggml_mul_mat(ctx, layer->down, h);
}

// The networks that a router gives most weight, added up by it.
static struct ggml_tensor *experts(const struct llama_build *b, const struct llama_layer *layer,
                                   struct ggml_tensor *h) {
    const struct llama_shape *s = &b->llama->shape;
    const int64_t n = b->graph->n_tokens;
    struct ggml_context *ctx = b->ctx;
    struct ggml_tensor *weights = ggml_soft_max(ctx, ggml_mul_mat(ctx, layer->router, h));
    struct ggml_tensor *ids = ggml_argsort_top_k(ctx, weights, s->used);
    weights = ggml_get_rows(ctx, ggml_reshape_3d(ctx, weights, 1, s->experts, n), ids);
    h = ggml_reshape_3d(ctx, h, s->width, 1, n);
    struct ggml_tensor *gate = ggml_mul_mat_id(ctx, layer->gate, h, ids);
    h = ggml_swiglu_split(ctx, gate, ggml_mul_mat_id(ctx, layer->up, h, ids));
    h = ggml_mul(ctx, ggml_mul_mat_id(ctx, layer->down, h, ids), weights);
    struct ggml_tensor *sum = NULL;
    for (int i = 0; i < s->used; ++i) {
        struct ggml_tensor *one = ggml_view_2d(ctx, h, s->width, n, h->nb[2], (size_t)i * h->nb[1]);
        sum = sum ? ggml_add(ctx, sum, one) : one;
    }
    return sum;
}

static struct ggml_tensor *add_layer(const struct llama_build *b, const struct llama_layer *layer,
                                     struct ggml_tensor *x) {
    const struct llama_shape *s = &b->llama->shape;
    struct ggml_context *ctx = b->ctx;
    struct ggml_tensor *h = llama_normed(ctx, x, layer->norm1);
    struct ggml_tensor *q = heads(b, ggml_mul_mat(ctx, layer->wq, h), s->heads);
    store(b, heads(b, ggml_mul_mat(ctx, layer->wk, h), s->kv_heads), layer->k);
    store(b, ggml_mul_mat(ctx, layer->wv, h), layer->v);
    struct ggml_tensor *y = ggml_flash_attn_ext(ctx, ggml_permute(ctx, q, 0, 2, 1, 3),
                                                cached(b, layer->k), cached(b, layer->v),
                                                b->graph->mask, 1.0f / sqrtf((float)b->head), 0, 0);
    y = ggml_reshape_2d(ctx, y, s->width, b->graph->n_tokens);
    x = ggml_add(ctx, x, ggml_mul_mat(ctx, layer->wo, y));
    h = llama_normed(ctx, x, layer->norm2);
    return ggml_add(ctx, x, layer->router ? experts(b, layer, h) : gated(ctx, layer, h));
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
    if (llama->layers) {
        graph->positions = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens));
        graph->rows = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I64, n_tokens));
        graph->mask = input(ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_past + n_tokens, n_tokens));
    }
    struct llama_build b = {graph, ctx, llama, s->width / s->heads, NULL};
    struct ggml_tensor *x = ggml_get_rows(ctx, llama->embedding, graph->tokens);
    for (int i = 0; i < s->layers; ++i)
        x = llama->layers ? add_layer(&b, &llama->layers[i], x)
                          : llama_add_recurrent(&b, &llama->recurrent[i], x);
    x = ggml_view_2d(ctx, x, s->width, 1, x->nb[1], (size_t)(n_tokens - 1) * x->nb[1]);
    x = ggml_mul_mat(ctx, llama->output, llama_normed(ctx, x, llama->norm));
    ggml_set_output(x);
    ggml_build_forward_expand(graph->graph, x);
    return true;
}

// Where the tokens are in the cache, and what each of them attends to.
static void set_places(const struct llama_graph *graph) {
    const int64_t n_kv = graph->mask->ne[0];
    const ggml_fp16_t hidden = ggml_fp32_to_fp16(-INFINITY);
    ggml_fp16_t *row = calloc((size_t)n_kv, sizeof(*row));
    for (int i = 0; i < graph->n_tokens && row; ++i) {
        const int64_t place = graph->n_past + i;
        const int32_t position = (int32_t)place;
        for (int64_t k = 0; k < n_kv; ++k)
            row[k] = k > place ? hidden : 0;
        ggml_backend_tensor_set(graph->positions, &position, (size_t)i * sizeof(position),
                                sizeof(position));
        ggml_backend_tensor_set(graph->rows, &place, (size_t)i * sizeof(place), sizeof(place));
        ggml_backend_tensor_set(graph->mask, row, (size_t)i * graph->mask->nb[1],
                                (size_t)n_kv * sizeof(*row));
    }
    free(row);
}

void llama_graph_set_inputs(const struct llama_graph *graph) {
    for (int32_t i = 0; i < graph->n_tokens; ++i)
        ggml_backend_tensor_set(graph->tokens, &i, (size_t)i * sizeof(i), sizeof(i));
    if (graph->mask) set_places(graph);
}

void llama_graph_free(struct llama_graph *graph) {
    ggml_free(graph->ctx);
}
