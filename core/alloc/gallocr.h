// SPDX-License-Identifier: MIT
// Internals of the graph allocator. A plan has an entry for every tensor that a graph mentions.
// gallocr_plan.c makes a plan from a graph; gallocr_use.c binds the tensors of a graph with the
// same structure to its entries.
#ifndef GGML_ALLOC_GALLOCR_H
#define GGML_ALLOC_GALLOCR_H

#include "alloc/liveness.h"
#include "alloc/memory_plan.h"
#include "base/data/tensor_index.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"

// One per distinct buffer type.
struct gallocr_pool {
    ggml_backend_buffer_type_t buft;
    size_t alignment;
    size_t chunk_limit;
    ggml_backend_buffer_t *chunks; // members may be NULL after a failure
    int32_t n_chunks;
    char *base; // of the first chunk, while using a plan; NULL: there is none
};

struct plan_entry {
    struct ggml_tensor *tensor; // of the last graph in `round`
    size_t size;                // that the place has, padded
    size_t offset;
    int32_t chunk;
    int32_t pool;       // -1: a view, or its memory comes from elsewhere
    int32_t root;       // the entry that owns the memory; itself unless it is a view
    uint32_t round;     // in which it was bound
    int8_t inplace_src; // source whose memory it takes over, or -1
    uint8_t traits;     // what else the plan depends on
    bool placed;        // in that round: was given its memory
    bool used;          // is a source of some node
};

struct plan_node {
    int32_t dst;
    uint32_t slots; // bit k: source k is there; their entries follow those of earlier nodes
};

struct graph_plan {
    int n_nodes; // -1: no plan
    int n_leafs;
    struct plan_node *nodes;
    int32_t *leafs;
    int32_t *sources; // entries
    struct plan_entry *entries;
    int32_t n_sources;
    int32_t n_entries;
    int32_t nodes_capacity, leafs_capacity, sources_capacity, entries_capacity;
    struct memory_chunks *pools;
    int n_pools;
    uint32_t round; // of the last use
};

// Memory that planning needs, kept for the next plan.
struct plan_scratch {
    struct tensor_index index;
    struct live_range *ranges; // by entry, as the next two
    struct live_last *last;
    struct live_offset *offsets;
    int32_t *placed; // entries that get memory, in the order of define_all()
    struct live_edge *edges;
    int32_t *node_entries; // by node, as the next two
    int32_t *first_edge;
    int32_t *inplace_steps;
    int32_t ranges_capacity, last_capacity, offsets_capacity, placed_capacity, edges_capacity;
    int32_t node_entries_capacity, first_edge_capacity, inplace_steps_capacity;
};

struct ggml_gallocr {
    int n_buffers;
    int n_pools;
    int *pool_of; // by buffer id
    struct gallocr_pool *pools;
    struct graph_plan plan;
    struct graph_plan spare; // without a meaning, to build the next one in
    struct plan_scratch scratch;
};

// Plans a graph into galloc->spare; ids may be NULL (all 0). On failure false, a message and
// an empty plan.
bool graph_plan_build(struct ggml_gallocr *galloc, const struct ggml_cgraph *graph,
                      const int *node_ids, const int *leaf_ids);
// Forgets the plan and keeps its memory, or frees it too.
void graph_plan_clear(struct graph_plan *plan);
void graph_plan_free(struct graph_plan *plan);
void plan_scratch_free(struct plan_scratch *scratch);

// Whether the pool's buffers hold n chunks of these sizes, and making it so: what is too small is
// freed and allocated anew. false with a message.
bool gallocr_pool_fits(const struct gallocr_pool *pool, const size_t *sizes, int32_t n);
bool gallocr_pool_provide(struct gallocr_pool *pool, const size_t *sizes, int32_t n);

enum plan_result { PLAN_USED, PLAN_DOES_NOT_FIT, PLAN_FAILED };

// Gives the graph's tensors their places. Unless all went well no tensor is changed.
enum plan_result graph_plan_use(struct ggml_gallocr *galloc, struct ggml_cgraph *graph);

static inline bool needs_memory(const struct ggml_tensor *tensor) {
    return !tensor->data && !tensor->buffer && !tensor->view_src;
}

// Properties that decide about lifetimes: beside the flags of inputs and outputs
enum { PLAN_LEAF = 4, PLAN_VIEW = 8, PLAN_PARAM = 16 };

static inline uint8_t plan_traits(const struct ggml_tensor *tensor) {
    const int flags = tensor->flags & (GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT);
    return (uint8_t)(flags | (tensor->op == GGML_OP_NONE ? PLAN_LEAF : 0) |
                     (tensor->view_src ? PLAN_VIEW : 0) |
                     (tensor->flags & GGML_TENSOR_FLAG_PARAM ? PLAN_PARAM : 0));
}

// Bytes that a buffer of this type keeps for the tensor.
static inline size_t plan_size(const struct gallocr_pool *pool, const struct ggml_tensor *tensor) {
    return pool->buft->table->get_alloc_size ? ggml_backend_buft_get_alloc_size(pool->buft, tensor)
                                             : ggml_nbytes(tensor);
}

#endif
