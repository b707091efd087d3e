// SPDX-License-Identifier: MIT
// Inside the graph allocator. A plan gives every tensor that a graph mentions an entry; building
// one reads the graph, using one binds the tensors of a graph with the same structure to the
// entries.
#ifndef GGML_GRAPH_GALLOCR_H
#define GGML_GRAPH_GALLOCR_H

#include "ggml-alloc.h"
#include "ggml-impl.h"
#include "graph/memory_plan.h"

// One per distinct buffer type.
struct gallocr_pool {
    ggml_backend_buffer_type_t buft;
    size_t alignment;
    size_t chunk_limit;
    ggml_backend_buffer_t *chunks; // members may be NULL after a failure
    int32_t n_chunks;
};

struct plan_entry {
    struct ggml_tensor *tensor; // while building or using the plan
    size_t size;                // that the place has, padded
    size_t offset;
    int32_t chunk;
    int32_t pool;       // -1: a view, or its memory comes from elsewhere
    int32_t root;       // the entry that owns the memory; itself unless it is a view
    int8_t inplace_src; // source whose memory it takes over, or -1
    uint8_t traits;     // what else the plan depends on
    bool pending;       // while using the plan: to be placed, then: was placed
};

struct plan_node {
    int32_t dst;
    int32_t src[GGML_MAX_SRC]; // -1: none
};

struct graph_plan {
    int n_nodes; // -1: no plan
    int n_leafs;
    struct plan_node *nodes;
    int32_t *leafs;
    struct plan_entry *entries;
    int32_t n_entries;
    int32_t capacity;
    struct memory_chunks *pools;
    int n_pools;
};

struct ggml_gallocr {
    int n_buffers;
    int n_pools;
    int *pool_of; // by buffer id
    struct gallocr_pool *pools;
    struct graph_plan plan;
};

// Plans a graph; ids may be NULL (all 0). On failure false, a message and an empty plan.
bool graph_plan_build(const struct ggml_gallocr *galloc, const struct ggml_cgraph *graph,
                      const int *node_ids, const int *leaf_ids, struct graph_plan *out_plan);
void graph_plan_free(struct graph_plan *plan);

// Whether the pool's buffers hold n chunks of these sizes, and making it so: what is too small is
// freed and allocated anew. false with a message.
bool gallocr_pool_fits(const struct gallocr_pool *pool, const size_t *sizes, int32_t n);
bool gallocr_pool_provide(struct gallocr_pool *pool, const size_t *sizes, int32_t n);

enum plan_result { PLAN_USED, PLAN_DOES_NOT_FIT, PLAN_FAILED };

// Gives the graph's tensors their places. Unless all went well no tensor is changed.
enum plan_result graph_plan_use(struct ggml_gallocr *galloc, struct ggml_cgraph *graph);

// Owner of a tensor's memory.
static inline struct ggml_tensor *tensor_root(struct ggml_tensor *tensor) {
    struct ggml_tensor *root = tensor->view_src ? tensor->view_src : tensor;
    return root->view_src ? root->view_src : root;
}

static inline bool needs_memory(const struct ggml_tensor *tensor) {
    return !tensor->data && !tensor->buffer && !tensor->view_src;
}

// Properties that decide about lifetimes.
static inline uint8_t plan_traits(const struct ggml_tensor *tensor) {
    const int flags = tensor->flags & (GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT);
    return (uint8_t)(flags | (tensor->op == GGML_OP_NONE ? 4 : 0) | (tensor->view_src ? 8 : 0) |
                     (tensor->flags & GGML_TENSOR_FLAG_PARAM ? 16 : 0));
}

// Whether a node may overwrite a source of its own layout.
static inline bool can_take_over(const struct ggml_tensor *node, const struct ggml_tensor *src) {
    return ggml_op_can_inplace(node->op) && ggml_are_same_layout(node, src) && src->view_offs == 0;
}

#endif
