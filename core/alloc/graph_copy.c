// SPDX-License-Identifier: MIT
// A graph and everything it reaches, duplicated on another device.
#include <string.h>

#include "base/array.h"
#include "base/data/tensor_index.h"
#include "base/mem.h"
#include "device/check.h"
#include "ggml-impl.h"

// A tensor that the graph reaches.
struct copied {
    struct ggml_tensor *source;
    struct ggml_tensor *copy;
};

struct copier {
    struct copied *tensors; // in order of discovery
    struct tensor_index ids;
    int32_t n_tensors, n_views;
    int32_t tensors_capacity;
};

static struct tensor_list copier_list(const struct copier *copier) {
    return (struct tensor_list){copier->tensors, sizeof(copier->tensors[0])};
}

static bool out_of_memory(void) {
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_backend_graph_copy: no memory for the copy");
    return false;
}

// Adds a tensor once; one without data can't be copied.
static bool copier_add(struct copier *copier, struct ggml_tensor *tensor) {
    if (!tensor || tensor_index_get(&copier->ids, copier_list(copier), tensor) >= 0) return true;
    if (!tensor->data && !ggml_is_empty(tensor)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_backend_graph_copy: tensor '%s' has no data",
                  tensor->name);
        return false;
    }
    if (tensor->view_src && tensor->view_src->view_src) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_backend_graph_copy: '%s' is a view of a view",
                  tensor->name);
        return false;
    }
    if (!ARRAY_GROW(copier, tensors, (int64_t)copier->n_tensors + 1) ||
        !tensor_index_grow(&copier->ids, copier_list(copier))) {
        return out_of_memory();
    }
    copier->tensors[copier->n_tensors] = (struct copied){tensor, NULL};
    tensor_index_add(&copier->ids, copier_list(copier), tensor, copier->n_tensors++);
    if (tensor->view_src) copier->n_views++;
    return true;
}

// The nodes and everything they refer to, breadth first without recursion: graphs can be deep.
static bool copier_collect(struct copier *copier, const struct ggml_cgraph *graph) {
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (!copier_add(copier, graph->nodes[i])) return false;
    }
    for (int32_t i = 0; i < copier->n_tensors; ++i) {
        const struct ggml_tensor *tensor = copier->tensors[i].source;
        if (!copier_add(copier, tensor->view_src)) return false;
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (!copier_add(copier, tensor->src[k])) return false;
        }
    }
    return true;
}

// Frees what only copying needs; the copy itself has contexts and a buffer of its own.
static void copier_free(struct copier *copier) {
    tensor_index_free(&copier->ids);
    ggml_mem_free(copier->tensors);
}

static struct ggml_tensor *copier_copy_of(const struct copier *copier,
                                          const struct ggml_tensor *source) {
    return copier->tensors[tensor_index_get(&copier->ids, copier_list(copier), source)].copy;
}

static struct ggml_context *new_context(int32_t n_tensors, size_t extra) {
    const struct ggml_init_params params = {
        .mem_size = (size_t)n_tensors * ggml_tensor_overhead() + extra,
        .no_alloc = true,
    };
    return ggml_init(params);
}

// A tensor with the same layout and operation; references follow when all copies exist.
static struct ggml_tensor *duplicate(struct ggml_context *ctx, const struct ggml_tensor *source) {
    struct ggml_tensor *copy = ggml_new_tensor(ctx, source->type, GGML_MAX_DIMS, source->ne);
    if (!copy || (copy->flags & GGML_TENSOR_FLAG_ERROR)) return NULL;
    memcpy(copy->nb, source->nb, sizeof(copy->nb));
    memcpy(copy->op_params, source->op_params, sizeof(copy->op_params));
    memcpy(copy->name, source->name, sizeof(copy->name));
    copy->op = source->op;
    copy->flags = source->flags;
    copy->view_offs = source->view_offs;
    return copy;
}

// Copies all tensors, then connects them. Views are in a context of their own, as they get no
// memory.
static bool copier_duplicate(struct copier *copier, struct ggml_backend_graph_copy *result) {
    for (int32_t i = 0; i < copier->n_tensors; ++i) {
        struct copied *tensor = &copier->tensors[i];
        tensor->copy =
            duplicate(tensor->source->view_src ? result->ctx_unallocated : result->ctx_allocated,
                      tensor->source);
        if (!tensor->copy) return out_of_memory();
    }
    for (int32_t i = 0; i < copier->n_tensors; ++i) {
        const struct ggml_tensor *source = copier->tensors[i].source;
        struct ggml_tensor *copy = copier->tensors[i].copy;
        if (source->view_src) copy->view_src = copier_copy_of(copier, source->view_src);
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (source->src[k]) copy->src[k] = copier_copy_of(copier, source->src[k]);
        }
    }
    return true;
}

// Not only the leafs: a node's data may be kept from an earlier computation.
static bool copier_copy_data(const struct copier *copier) {
    const unsigned long failures_before = ggml_fail_count();
    for (int32_t i = 0; i < copier->n_tensors; ++i) {
        const struct copied *tensor = &copier->tensors[i];
        if (tensor->source->view_src) {
            ggml_backend_view_init(tensor->copy);
        } else {
            ggml_backend_tensor_copy(tensor->source, tensor->copy);
        }
        if (ggml_fail_count() != failures_before) return false;
    }
    return true;
}

static struct ggml_cgraph *copier_graph(const struct copier *copier, struct ggml_context *ctx,
                                        const struct ggml_cgraph *graph) {
    struct ggml_cgraph *copy = ggml_new_graph_custom(ctx, (size_t)graph->n_nodes, false);
    if (!copy) return NULL;
    for (int i = 0; i < graph->n_nodes; ++i) {
        copy->nodes[i] = copier_copy_of(copier, graph->nodes[i]);
    }
    copy->n_nodes = graph->n_nodes;
    copy->order = graph->order;
    return copy;
}

// Collects, duplicates, allocates, copies the data, and makes the graph. False after the error
// was set; the caller frees what there is.
static bool copy_graph(struct copier *copier, ggml_backend_t backend, struct ggml_cgraph *graph,
                       struct ggml_backend_graph_copy *result) {
    if (!copier_collect(copier, graph)) return false;
    const size_t overhead = ggml_graph_overhead_custom((size_t)graph->n_nodes, false);
    result->ctx_allocated = new_context(copier->n_tensors - copier->n_views, overhead);
    result->ctx_unallocated = new_context(copier->n_views, GGML_MEM_ALIGN);
    if (!result->ctx_allocated || !result->ctx_unallocated) return out_of_memory();
    if (!copier_duplicate(copier, result)) return false;
    result->buffer = ggml_backend_alloc_ctx_tensors(result->ctx_allocated, backend);
    if (!result->buffer || !copier_copy_data(copier)) return false;
    result->graph = copier_graph(copier, result->ctx_allocated, graph);
    return result->graph || out_of_memory();
}

struct ggml_backend_graph_copy ggml_backend_graph_copy(ggml_backend_t backend,
                                                       struct ggml_cgraph *graph) {
    const struct ggml_backend_graph_copy nothing = {0};
    struct ggml_backend_graph_copy result = {0};
    struct copier copier = {0};
    if (!device_require_arg(backend, __func__, "stream") ||
        !device_require_arg(graph, __func__, "graph")) {
        return nothing;
    }
    if (graph->error || graph->n_nodes <= 0 || !graph->nodes) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph %s", __func__,
                  graph->error ? graph->error : "has no nodes");
        return nothing;
    }
    const bool copied = copy_graph(&copier, backend, graph, &result);
    copier_free(&copier);
    if (copied) return result;
    ggml_backend_graph_copy_free(result);
    return nothing;
}

// Buffer and contexts are the copy's own; the graph that was copied is untouched.
void ggml_backend_graph_copy_free(struct ggml_backend_graph_copy copy) {
    ggml_backend_buffer_free(copy.buffer);
    ggml_free(copy.ctx_allocated);
    ggml_free(copy.ctx_unallocated);
}
