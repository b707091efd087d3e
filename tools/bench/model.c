// SPDX-License-Identifier: MIT
// A layer is attention and a feed-forward network; its number of nodes is fixed, so that the number
// of layers gives that of nodes.
#include "model.h"

#include <stdlib.h>

#include "idle.h"

enum { LAYER_NODES = 29, WIDTH = 64, HEADS = 4 };

struct layer {
    struct ggml_tensor *norm1, *norm2, *q, *k, *v, *o, *gate, *up, *down;
};

// All weights of a device share one address: nothing is read or written.
static struct ggml_tensor *weight(struct model *model, int device, int n_in, int n_out) {
    struct ggml_tensor *tensor = ggml_new_tensor_2d(model->ctx, GGML_TYPE_F32, n_in, n_out);
    void *address = ggml_backend_buffer_get_base(model->buffers[device]);
    ggml_backend_tensor_alloc(model->buffers[device], tensor, address);
    return tensor;
}

// Layers spread evenly over all devices but device 0, the CPU.
bool model_init(struct model *model, int n_nodes, int n_devices) {
    const int n_layers = n_nodes > LAYER_NODES ? n_nodes / LAYER_NODES : 1;
    const struct ggml_init_params params = {
        .mem_size = (size_t)n_layers * 9 * ggml_tensor_overhead() + 1024,
        .no_alloc = true,
    };
    *model = (struct model){.n_layers = n_layers, .ctx = ggml_init(params)};
    model->layers = calloc((size_t)n_layers, sizeof(model->layers[0]));
    model->buffers = calloc((size_t)n_devices, sizeof(model->buffers[0]));
    if (!model->ctx || !model->layers || !model->buffers) return false;
    for (; model->n_buffers < n_devices; ++model->n_buffers) {
        ggml_backend_buffer_type_t buft = idle_memory(model->n_buffers);
        ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(buft, WIDTH * WIDTH * 16);
        if (!buffer) return false;
        ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        model->buffers[model->n_buffers] = buffer;
    }
    for (int i = 0; i < n_layers; ++i) {
        const int d = 1 + (int)((int64_t)i * (n_devices - 1) / n_layers);
        model->layers[i] = (struct layer){
            weight(model, d, WIDTH, 1),         weight(model, d, WIDTH, 1),
            weight(model, d, WIDTH, WIDTH),     weight(model, d, WIDTH, WIDTH),
            weight(model, d, WIDTH, WIDTH),     weight(model, d, WIDTH, WIDTH),
            weight(model, d, WIDTH, 2 * WIDTH), weight(model, d, WIDTH, 2 * WIDTH),
            weight(model, d, 2 * WIDTH, WIDTH),
        };
    }
    return true;
}

void model_free(struct model *model) {
    for (int i = 0; i < model->n_buffers; ++i) {
        ggml_backend_buffer_free(model->buffers[i]);
    }
    ggml_free(model->ctx);
    free(model->buffers);
    free(model->layers);
}

// Splits rows into heads, turned by position unless that is NULL, and brings heads outside.
static struct ggml_tensor *heads(struct ggml_context *ctx, struct ggml_tensor *x,
                                 struct ggml_tensor *positions) {
    struct ggml_tensor *y = ggml_reshape_3d(ctx, x, WIDTH / HEADS, HEADS, x->ne[1]);
    if (positions) y = ggml_rope(ctx, y, positions, WIDTH / HEADS, 0);
    return ggml_permute(ctx, y, 0, 2, 1, 3);
}

// LAYER_NODES nodes, and another if the variant is odd.
static struct ggml_tensor *add_layer(struct ggml_context *ctx, const struct layer *layer,
                                     struct ggml_tensor *x, struct ggml_tensor *positions,
                                     uint32_t variant) {
    struct ggml_tensor *h = ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), layer->norm1);
    struct ggml_tensor *q = heads(ctx, ggml_mul_mat(ctx, layer->q, h), positions);
    struct ggml_tensor *k = heads(ctx, ggml_mul_mat(ctx, layer->k, h), positions);
    struct ggml_tensor *v = heads(ctx, ggml_mul_mat(ctx, layer->v, h), NULL);
    struct ggml_tensor *scores = ggml_soft_max(ctx, ggml_mul_mat(ctx, k, q));
    struct ggml_tensor *y = ggml_mul_mat(ctx, ggml_cont(ctx, ggml_transpose(ctx, v)), scores);
    y = ggml_cont_2d(ctx, ggml_permute(ctx, y, 0, 2, 1, 3), WIDTH, x->ne[1]);
    x = ggml_add(ctx, x, ggml_mul_mat(ctx, layer->o, y));
    h = ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), layer->norm2);
    struct ggml_tensor *gate = ggml_mul_mat(ctx, layer->gate, h);
    struct ggml_tensor *up = ggml_mul_mat(ctx, layer->up, h);
    if (variant & 1) {
        h = ggml_mul(ctx, ggml_silu(ctx, gate), up);
    } else {
        h = ggml_swiglu_split(ctx, gate, up);
    }
    return ggml_add(ctx, x, ggml_mul_mat(ctx, layer->down, h));
}

// An upper bound, with one layer more for inputs.
size_t model_graph_size(const struct model *model) {
    return (size_t)(model->n_layers + 1) * (LAYER_NODES + 6);
}

size_t model_graph_bytes(const struct model *model) {
    const size_t n = model_graph_size(model);
    return n * ggml_tensor_overhead() + ggml_graph_overhead_custom(n, false);
}

// Each of bits 0 to 4 of `structure` decides the form of some layers, so that graphs can differ
// slightly.
struct ggml_tensor *model_tensors(const struct model *model, struct ggml_context *ctx, int n_tokens,
                                  uint32_t structure) {
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, WIDTH, n_tokens);
    struct ggml_tensor *positions = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens);
    ggml_set_input(x);
    ggml_set_input(positions);
    for (int i = 0; i < model->n_layers; ++i) {
        x = add_layer(ctx, &model->layers[i], x, positions, structure >> (i % 5));
    }
    return x;
}

struct ggml_cgraph *model_graph(const struct model *model, int n_tokens, uint32_t structure,
                                void *memory, struct ggml_context **out_ctx) {
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){model_graph_bytes(model), memory, true});
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, model_graph_size(model), false);
    ggml_build_forward_expand(graph, model_tensors(model, ctx, n_tokens, structure));
    *out_ctx = ctx;
    return graph;
}
