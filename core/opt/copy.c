// SPDX-License-Identifier: MIT
// Copies of static graphs: the scheduler gives memory to the tensors of the graph that it holds,
// and the graphs of a context share tensors.
#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "opt/opt.h"

// Maps tensors to copies by the slots of a hash set: O(nodes + leaves) in all.
struct copier {
    struct ggml_context *ctx;
    struct ggml_hash_set set;
    struct ggml_tensor **copies; // by slot of the set
};

// An upper bound: every tensor plus the graph itself.
size_t opt_copy_size(struct ggml_cgraph *graph) {
    const size_t n = (size_t)graph->n_nodes + (size_t)graph->n_leafs;
    return n * ggml_tensor_overhead() +
           ggml_graph_overhead_custom((size_t)ggml_graph_size(graph), false);
}

// Tensors outside the graph, whose memory is the application's, stay shared.
static struct ggml_tensor *copy_of(const struct copier *copier, struct ggml_tensor *tensor) {
    const size_t slot = tensor ? ggml_hash_find(&copier->set, tensor) : GGML_HASHSET_FULL;
    if (slot == GGML_HASHSET_FULL || !ggml_bitset_get(copier->set.used, slot)) return tensor;
    return copier->copies[slot];
}

// Copies a tensor whose sources and view source are copied already: the graph has sources before
// what is computed from them.
static bool copy_tensor(struct copier *copier, struct ggml_tensor *tensor) {
    const size_t slot = ggml_hash_insert(&copier->set, tensor);
    if (slot == GGML_HASHSET_FULL || slot == GGML_HASHSET_ALREADY_EXISTS)
        return slot != GGML_HASHSET_FULL;
    struct ggml_tensor *copy =
        ggml_new_tensor(copier->ctx, tensor->type, GGML_MAX_DIMS, tensor->ne);
    if (ggml_tensor_is_error(copy)) return false;
    *copy = *tensor;
    copy->view_src = copy_of(copier, tensor->view_src);
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        copy->src[i] = copy_of(copier, tensor->src[i]);
    copier->copies[slot] = copy;
    return true;
}

static bool copy_tensors(struct copier *copier, struct ggml_cgraph *graph) {
    for (int i = 0; i < graph->n_leafs; ++i) {
        if (!copy_tensor(copier, graph->leafs[i])) return false;
    }
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (!copy_tensor(copier, graph->nodes[i])) return false;
    }
    return true;
}

// Nodes are appended in their order; expanding finds the leaves again.
struct ggml_cgraph *opt_copy_graph(struct ggml_context *ctx, struct ggml_cgraph *graph) {
    const size_t n = (size_t)graph->n_nodes + (size_t)graph->n_leafs;
    struct copier copier = {.ctx = ctx, .set = ggml_hash_set_new(n)};
    struct ggml_cgraph *copy = NULL;
    copier.copies = ggml_mem_calloc(copier.set.size ? copier.set.size : 1, sizeof(*copier.copies));
    if (copier.set.size && copier.copies && copy_tensors(&copier, graph)) {
        copy = ggml_new_graph_custom(ctx, (size_t)ggml_graph_size(graph), false);
        for (int i = 0; copy && i < graph->n_nodes; ++i)
            ggml_build_forward_expand(copy, copy_of(&copier, graph->nodes[i]));
    }
    if (!copy) ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_opt_alloc: no memory for the graph");
    ggml_mem_free(copier.copies);
    ggml_hash_set_free(&copier.set);
    return copy;
}
