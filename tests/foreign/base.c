// SPDX-License-Identifier: MIT
// A libggml-base with what the plugin foreign and the backends of the tests need of it.
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggml-impl.h"
#include "old.h"

// --- names
// -----------------------------------------------------------------------------------------

const char *ggml_op_name(enum ggml_op op) {
    static const char *const names[] = {
#define GGML_OP_ROW(number, name, ...) [number] = #name,
#include "op_list.inl"
    };
    return names[op];
}

const char *ggml_unary_op_name(enum ggml_unary_op op) {
    static const char *const names[] = {
#define GGML_UNARY_ROW(number, name, ...) [number] = #name,
#include "unary_list.inl"
    };
    return names[op];
}

static const struct type {
    const char *name;
    size_t size;
} types[] = {
#define GGML_TYPE_ROW(number, upper, name, block, size, ...) [number] = {name, size},
#include "type_list.inl"
};

const char *ggml_type_name(enum ggml_type type) {
    return types[type].name;
}

size_t ggml_type_size(enum ggml_type type) {
    return types[type].size;
}

size_t ggml_tensor_overhead(void) {
    return 32 + sizeof(struct ggml_tensor);
}

const char *ggml_version(void) {
    return "0.0-test";
}

static ggml_log_callback log_callback;
void ggml_log_set(ggml_log_callback callback, void *user_data) {
    (void)user_data;
    log_callback = callback;
}

// --- graphs of one node
// ----------------------------------------------------------------------------

struct ggml_context {
    struct ggml_tensor tensors[2];
    int n_tensors;
    struct ggml_cgraph graph;
    struct ggml_tensor *nodes[1], *leafs[1], *keys[7];
    int32_t use_counts[7];
    ggml_bitset_t used[1];
};

struct ggml_context *ggml_init(struct ggml_init_params params) {
    (void)params;
#ifdef BASE_SLOW // whoever opens it at the same time comes in between
    usleep(300000);
#endif
    return calloc(1, sizeof(struct ggml_context));
}

void ggml_free(struct ggml_context *ctx) {
    free(ctx);
}

struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0) {
    struct ggml_tensor *tensor = &ctx->tensors[ctx->n_tensors++];
    tensor->type = type;
    tensor->ne[0] = ne0;
    return tensor;
}

struct ggml_tensor *ggml_neg(struct ggml_context *ctx, struct ggml_tensor *a) {
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, a->type, a->ne[0]);
    tensor->op = GGML_OP_UNARY;
    tensor->op_params[0] = GGML_UNARY_OP_NEG;
    tensor->src[0] = a;
    return tensor;
}

struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size, bool grads) {
    (void)grads;
    ctx->graph = (struct ggml_cgraph){.size = (int)size, .nodes = ctx->nodes, .leafs = ctx->leafs};
    ctx->graph.use_counts = ctx->use_counts;
    ctx->graph.visited_hash_set = (struct ggml_hash_set){7, ctx->used, ctx->keys};
    return &ctx->graph;
}

void ggml_build_forward_expand(struct ggml_cgraph *graph, struct ggml_tensor *tensor) {
    ggml_hash_insert(&graph->visited_hash_set, tensor);
    graph->nodes[graph->n_nodes++] = tensor;
    graph->use_counts[ggml_hash_insert(&graph->visited_hash_set, tensor->src[0])] = 1;
    graph->leafs[graph->n_leafs++] = tensor->src[0];
}

// --- buffers
// ---------------------------------------------------------------------------------------

static bool buft_is_host(struct old_buft *buft) {
    (void)buft;
    return true;
}

static const char *buft_name(struct old_buft *buft) {
    (void)buft;
    return "CPU";
}

static size_t buft_alignment(struct old_buft *buft) {
    (void)buft;
    return 32;
}

struct old_buft *old_cpu_buffer_type(void) {
    static struct old_buft type = {
        .get_name = buft_name, .get_alignment = buft_alignment, .is_host = buft_is_host};
    return &type;
}

struct old_buffer *old_cpu_buffer_from_ptr(void *ptr, size_t size) {
    struct old_buffer *buffer = calloc(1, sizeof(*buffer));
    buffer->buft = old_cpu_buffer_type();
    buffer->context = ptr;
    buffer->size = size;
    return buffer;
}

struct old_buffer *old_alloc_buffer(struct old_buft *buft, size_t size) {
    if (size > 0) return buft->alloc_buffer(buft, size);
    struct old_buffer *buffer = calloc(1, sizeof(*buffer));
    buffer->buft = buft;
    return buffer;
}

void old_buffer_free(struct old_buffer *buffer) {
    if (buffer->free_buffer) buffer->free_buffer(buffer);
    free(buffer);
}

void old_set_usage(struct old_buffer *buffer, enum ggml_backend_buffer_usage usage) {
    buffer->usage = usage;
}
