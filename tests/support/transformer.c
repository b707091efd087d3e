// SPDX-License-Identifier: MIT
// Builds the weights, the cache and the graph of a transformer of the shape asked for.
#include "support/transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml.h"

const struct transformer_shape transformer_small = {
    .layers = 4,
    .width = 64,
    .heads = 4,
    .kv_heads = 2,
    .hidden = 96,
    .vocabulary = 40,
    .capacity = 32,
    .type = GGML_TYPE_F16,
};

// --- numbers

static uint64_t next_random(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static float uniform(uint64_t *state) {
    return (float)(next_random(state) >> 40) / (float)(1 << 24) * 2.0f - 1.0f;
}

// Values of a weight; those of a norm lie around 1.
static void fill(struct ggml_tensor *tensor, uint64_t *state) {
    if (!tensor || !tensor->buffer) return;
    const int64_t n = ggml_nelements(tensor);
    const bool norm = tensor->ne[1] == 1;
    const float scale = 1.0f / sqrtf((float)tensor->ne[0]);
    float *values = malloc((size_t)n * sizeof(float));
    void *bytes = malloc(ggml_nbytes(tensor));
    if (!values || !bytes) abort();
    for (int64_t i = 0; i < n; ++i) {
        values[i] = norm ? 1.0f + 0.1f * uniform(state) : scale * uniform(state);
    }
    ggml_quantize_chunk(tensor->type, values, bytes, 0, n / tensor->ne[0], tensor->ne[0], NULL);
    if (tensor->type == GGML_TYPE_F32) {
        ggml_backend_tensor_set(tensor, values, 0, ggml_nbytes(tensor));
    } else {
        ggml_backend_tensor_set(tensor, bytes, 0, ggml_nbytes(tensor));
    }
    free(values);
    free(bytes);
}

// --- weights

static struct ggml_context *new_context(size_t n_tensors) {
    const struct ggml_init_params params = {
        .mem_size = n_tensors * ggml_tensor_overhead(),
        .no_alloc = true,
    };
    return ggml_init(params);
}

static struct ggml_tensor *named(struct ggml_tensor *tensor, int layer, const char *name) {
    if (layer >= 0) return ggml_format_name(tensor, "blk.%d.%s", layer, name);
    return ggml_set_name(tensor, name);
}

static struct ggml_tensor *matrix(struct ggml_context *ctx, enum ggml_type type, int layer,
                                  const char *name, int n_in, int n_out) {
    return named(ggml_new_tensor_2d(ctx, type, n_in, n_out), layer, name);
}

static struct ggml_tensor *vector(struct ggml_context *ctx, int layer, const char *name, int n) {
    return named(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n), layer, name);
}

static struct ggml_tensor *hidden_matrix(const struct transformer_shape *s,
                                         struct ggml_context *ctx, int layer, const char *name,
                                         int n_in, int n_out) {
    if (s->experts == 0) return matrix(ctx, s->type, layer, name, n_in, n_out);
    return named(ggml_new_tensor_3d(ctx, s->type, n_in, n_out, s->experts), layer, name);
}

static void define_layer(const struct transformer_shape *s, int i,
                         struct transformer_layer *layer) {
    struct ggml_context *ctx = layer->ctx;
    const int kv_width = s->width / s->heads * s->kv_heads;
    layer->norm1 = vector(ctx, i, "norm1", s->width);
    layer->wq = matrix(ctx, s->type, i, "wq", s->width, s->width);
    layer->wk = matrix(ctx, s->type, i, "wk", s->width, kv_width);
    layer->wv = matrix(ctx, s->type, i, "wv", s->width, kv_width);
    layer->wo = matrix(ctx, s->type, i, "wo", s->width, s->width);
    layer->norm2 = vector(ctx, i, "norm2", s->width);
    if (s->experts > 0)
        layer->router = matrix(ctx, GGML_TYPE_F32, i, "router", s->width, s->experts);
    layer->gate = hidden_matrix(s, ctx, i, "gate", s->width, s->hidden);
    layer->up = hidden_matrix(s, ctx, i, "up", s->width, s->hidden);
    layer->down = hidden_matrix(s, ctx, i, "down", s->hidden, s->width);
    layer->k_cache = matrix(layer->cache_ctx, GGML_TYPE_F32, i, "k_cache", kv_width, s->capacity);
    layer->v_cache = matrix(layer->cache_ctx, GGML_TYPE_F32, i, "v_cache", kv_width, s->capacity);
}

static bool place_context(struct ggml_context *ctx, ggml_backend_buffer_type_t buft,
                          enum ggml_backend_buffer_usage usage, ggml_backend_buffer_t *out_buffer) {
    *out_buffer = NULL;
    if (!buft) return true;
    *out_buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, buft);
    if (*out_buffer) ggml_backend_buffer_set_usage(*out_buffer, usage);
    return *out_buffer != NULL;
}

static bool new_layer(struct transformer *model, int i, uint64_t *state, transformer_place_t place,
                      transformer_place_t cache_place, void *user) {
    struct transformer_layer *layer = &model->layers[i];
    layer->ctx = new_context(16);
    layer->cache_ctx = new_context(2);
    if (!layer->ctx || !layer->cache_ctx) return false;
    define_layer(&model->shape, i, layer);
    ggml_backend_buffer_type_t cache = cache_place ? cache_place(user, i) : place(user, i);
    if (!place_context(layer->ctx, place(user, i), GGML_BACKEND_BUFFER_USAGE_WEIGHTS,
                       &layer->buffer) ||
        !place_context(layer->cache_ctx, cache, GGML_BACKEND_BUFFER_USAGE_ANY,
                       &layer->cache_buffer)) {
        return false;
    }
    struct ggml_tensor *weights[] = {layer->norm1, layer->wq,    layer->wk,     layer->wv,
                                     layer->wo,    layer->norm2, layer->router, layer->gate,
                                     layer->up,    layer->down};
    for (size_t k = 0; k < sizeof(weights) / sizeof(weights[0]); ++k) {
        fill(weights[k], state);
    }
    return true;
}

struct transformer *transformer_new(const struct transformer_shape *shape, uint64_t seed,
                                    transformer_place_t place, transformer_place_t cache_place,
                                    void *user) {
    struct transformer *model = calloc(1, sizeof(*model));
    if (!model) return NULL;
    model->shape = *shape;
    model->layers = calloc((size_t)shape->layers + 1, sizeof(model->layers[0]));
    model->input_ctx = new_context(1);
    model->output_ctx = new_context(2);
    if (!model->layers || !model->input_ctx || !model->output_ctx) goto fail;
    model->embedding =
        matrix(model->input_ctx, GGML_TYPE_F32, -1, "embedding", shape->width, shape->vocabulary);
    model->norm = vector(model->output_ctx, -1, "norm", shape->width);
    model->output =
        matrix(model->output_ctx, shape->type, -1, "output", shape->width, shape->vocabulary);
    if (!place_context(model->input_ctx, place(user, -1), GGML_BACKEND_BUFFER_USAGE_WEIGHTS,
                       &model->input_buffer) ||
        !place_context(model->output_ctx, place(user, shape->layers),
                       GGML_BACKEND_BUFFER_USAGE_WEIGHTS, &model->output_buffer)) {
        goto fail;
    }
    fill(model->embedding, &seed);
    fill(model->norm, &seed);
    fill(model->output, &seed);
    for (int i = 0; i < shape->layers; ++i) {
        if (!new_layer(model, i, &seed, place, cache_place, user)) goto fail;
    }
    transformer_clear_cache(model);
    return model;
fail:
    transformer_free(model);
    return NULL;
}

void transformer_free(struct transformer *model) {
    if (!model) return;
    for (int i = 0; model->layers && i < model->shape.layers; ++i) {
        ggml_backend_buffer_free(model->layers[i].buffer);
        ggml_backend_buffer_free(model->layers[i].cache_buffer);
        ggml_free(model->layers[i].ctx);
        ggml_free(model->layers[i].cache_ctx);
    }
    ggml_backend_buffer_free(model->input_buffer);
    ggml_backend_buffer_free(model->output_buffer);
    ggml_free(model->input_ctx);
    ggml_free(model->output_ctx);
    free(model->layers);
    free(model);
}

void transformer_clear_cache(struct transformer *model) {
    for (int i = 0; i < model->shape.layers; ++i) {
        if (model->layers[i].cache_buffer)
            ggml_backend_buffer_clear(model->layers[i].cache_buffer, 0);
    }
}

// --- split by tensors

// The axis along which a tensor is split, in how many units; -1: it is whole everywhere.
static int axis_of(const struct ggml_tensor *tensor, int64_t *out_units) {
    static const struct {
        const char *suffix;
        int axis;
    } rules[] = {{".wq", 1}, {".wk", 1},   {".wv", 1},      {".wo", 0},      {".gate", 1},
                 {".up", 1}, {".down", 0}, {".k_cache", 0}, {".v_cache", 0}, {"output", 1}};
    const size_t n = strlen(tensor->name);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); ++i) {
        const size_t m = strlen(rules[i].suffix);
        if (n < m || strcmp(tensor->name + n - m, rules[i].suffix) != 0) continue;
        *out_units = strcmp(tensor->name, "output") == 0 ? tensor->ne[1] : 4;
        return rules[i].axis;
    }
    return -1;
}

struct ggml_backend_meta_split_state transformer_split(const struct ggml_tensor *tensor,
                                                       void *user) {
    const int n = *(const int *)user;
    struct ggml_backend_meta_split_state state = {.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED,
                                                  .n_segments = 1};
    int64_t units = 0;
    const int axis = axis_of(tensor, &units);
    state.nr[0] = 1;
    for (int j = 0; j < n && axis >= 0; ++j) {
        state.axis = (enum ggml_backend_meta_split_axis)axis;
        state.ne[j] = (units * (j + 1) / n - units * j / n) * (tensor->ne[axis] / units);
    }
    return state;
}

// --- graph

struct build {
    const struct transformer_shape *shape;
    struct transformer_graph *out;
    struct ggml_context *ctx;
    int head_size;
};

static struct ggml_tensor *normed(struct ggml_context *ctx, struct ggml_tensor *x,
                                  struct ggml_tensor *weight) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), weight);
}

static struct ggml_tensor *heads_of(const struct build *b, struct ggml_tensor *x, int heads) {
    struct ggml_tensor *y = ggml_reshape_3d(b->ctx, x, b->head_size, heads, b->out->n_tokens);
    return ggml_rope_ext(b->ctx, y, b->out->positions, NULL, b->head_size, GGML_ROPE_TYPE_NEOX, 0,
                         10000.0f, 1, 0, 1, 0, 0);
}

// Appends rows [kv width, tokens] to the cache.
static void store(const struct build *b, struct ggml_tensor *rows, struct ggml_tensor *cache) {
    struct ggml_tensor *place = ggml_view_2d(b->ctx, cache, cache->ne[0], b->out->n_tokens,
                                             cache->nb[1], (size_t)b->out->n_past * cache->nb[1]);
    struct ggml_tensor *flat = ggml_reshape_2d(b->ctx, rows, cache->ne[0], b->out->n_tokens);
    ggml_build_forward_expand(b->out->graph, ggml_cpy(b->ctx, flat, place));
}

// The cache so far as [head size, tokens, heads].
static struct ggml_tensor *cached(const struct build *b, struct ggml_tensor *cache) {
    const int n = b->out->n_past + b->out->n_tokens;
    struct ggml_tensor *view = ggml_view_3d(b->ctx, cache, b->head_size, b->shape->kv_heads, n,
                                            (size_t)b->head_size * cache->nb[0], cache->nb[1], 0);
    return ggml_permute(b->ctx, view, 0, 2, 1, 3);
}

static struct ggml_tensor *attention(const struct build *b, const struct transformer_layer *layer,
                                     struct ggml_tensor *x) {
    const struct transformer_shape *s = b->shape;
    struct ggml_context *ctx = b->ctx;
    struct ggml_tensor *q = heads_of(b, ggml_mul_mat(ctx, layer->wq, x), s->heads);
    struct ggml_tensor *k = heads_of(b, ggml_mul_mat(ctx, layer->wk, x), s->kv_heads);
    store(b, k, layer->k_cache);
    store(b, ggml_mul_mat(ctx, layer->wv, x), layer->v_cache);
    struct ggml_tensor *scores =
        ggml_mul_mat(ctx, cached(b, layer->k_cache), ggml_permute(ctx, q, 0, 2, 1, 3));
    scores = ggml_soft_max_ext(ctx, scores, b->out->mask, 1.0f / sqrtf((float)b->head_size), 0);
    struct ggml_tensor *v = ggml_cont(ctx, ggml_transpose(ctx, cached(b, layer->v_cache)));
    struct ggml_tensor *y = ggml_permute(ctx, ggml_mul_mat(ctx, v, scores), 0, 2, 1, 3);
    return ggml_mul_mat(ctx, layer->wo, ggml_cont_2d(ctx, y, s->width, b->out->n_tokens));
}

static struct ggml_tensor *dense(struct ggml_context *ctx, const struct transformer_layer *layer,
                                 struct ggml_tensor *x) {
    struct ggml_tensor *gate = ggml_mul_mat(ctx, layer->gate, x);
    struct ggml_tensor *up = ggml_mul_mat(ctx, layer->up, x);
    return ggml_mul_mat(ctx, layer->down, ggml_swiglu_split(ctx, gate, up));
}

// One expert per token: the one that the router scores highest.
static struct ggml_tensor *experts(const struct build *b, const struct transformer_layer *layer,
                                   struct ggml_tensor *x) {
    struct ggml_context *ctx = b->ctx;
    const int n = b->out->n_tokens;
    struct ggml_tensor *best = ggml_argmax(ctx, ggml_mul_mat(ctx, layer->router, x));
    struct ggml_tensor *ids = ggml_reshape_2d(ctx, best, 1, n);
    struct ggml_tensor *rows = ggml_reshape_3d(ctx, x, b->shape->width, 1, n);
    struct ggml_tensor *gate = ggml_mul_mat_id(ctx, layer->gate, rows, ids);
    struct ggml_tensor *up = ggml_mul_mat_id(ctx, layer->up, rows, ids);
    struct ggml_tensor *y =
        ggml_mul_mat_id(ctx, layer->down, ggml_swiglu_split(ctx, gate, up), ids);
    return ggml_reshape_2d(ctx, y, b->shape->width, n);
}

static struct ggml_tensor *input(struct ggml_tensor *tensor, const char *name) {
    ggml_set_input(tensor);
    return ggml_set_name(tensor, name);
}

bool transformer_graph_build(struct transformer *model, int n_tokens, int n_past,
                             struct transformer_graph *out_graph) {
    const struct transformer_shape *s = &model->shape;
    const size_t n_nodes = 64 * (size_t)s->layers + 64;
    const struct ggml_init_params params = {
        .mem_size = n_nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_nodes, false),
        .no_alloc = true,
    };
    *out_graph = (struct transformer_graph){.n_tokens = n_tokens, .n_past = n_past};
    struct ggml_context *ctx = ggml_init(params);
    out_graph->ctx = ctx;
    out_graph->graph = ggml_new_graph_custom(ctx, n_nodes, false);
    if (!out_graph->graph) return false;
    struct build b = {.shape = s, .out = out_graph, .ctx = ctx, .head_size = s->width / s->heads};
    out_graph->tokens = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens), "tokens");
    out_graph->positions = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens), "positions");
    out_graph->mask =
        input(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n_past + n_tokens, n_tokens), "mask");
    struct ggml_tensor *x = ggml_get_rows(ctx, model->embedding, out_graph->tokens);
    for (int i = 0; i < s->layers; ++i) {
        const struct transformer_layer *layer = &model->layers[i];
        x = ggml_add(ctx, x, attention(&b, layer, normed(ctx, x, layer->norm1)));
        struct ggml_tensor *h = normed(ctx, x, layer->norm2);
        x = ggml_add(ctx, x, s->experts > 0 ? experts(&b, layer, h) : dense(ctx, layer, h));
    }
    out_graph->logits = ggml_mul_mat(ctx, model->output, normed(ctx, x, model->norm));
    ggml_set_output(out_graph->logits);
    ggml_set_name(out_graph->logits, "logits");
    ggml_build_forward_expand(out_graph->graph, out_graph->logits);
    return true;
}

void transformer_graph_free(struct transformer_graph *graph) {
    ggml_free(graph->ctx);
    *graph = (struct transformer_graph){0};
}

void transformer_set_inputs(const struct transformer *model, const struct transformer_graph *graph,
                            uint64_t seed) {
    const int n_kv = graph->n_past + graph->n_tokens;
    int32_t *tokens = calloc((size_t)graph->n_tokens, sizeof(tokens[0]));
    int32_t *positions = calloc((size_t)graph->n_tokens, sizeof(positions[0]));
    float *mask = calloc((size_t)graph->n_tokens * (size_t)n_kv, sizeof(mask[0]));
    if (!tokens || !positions || !mask) abort();
    for (int i = 0; i < graph->n_tokens; ++i) {
        tokens[i] = (int32_t)(next_random(&seed) % (uint64_t)model->shape.vocabulary);
        positions[i] = graph->n_past + i;
        for (int k = 0; k < n_kv; ++k) {
            mask[i * n_kv + k] = k > graph->n_past + i ? -INFINITY : 0.0f;
        }
    }
    ggml_backend_tensor_set(graph->tokens, tokens, 0, ggml_nbytes(graph->tokens));
    ggml_backend_tensor_set(graph->positions, positions, 0, ggml_nbytes(graph->positions));
    ggml_backend_tensor_set(graph->mask, mask, 0, ggml_nbytes(graph->mask));
    free(tokens);
    free(positions);
    free(mask);
}
