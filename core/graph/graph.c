// SPDX-License-Identifier: MIT
// Graph objects: creation, copies, access.
//
// A graph is one object of a context: the struct, then nodes, leafs, the keys of the hash set of
// all its tensors, gradients and accumulators if requested, use counts, and the bits of the set's
// used slots. Data per tensor (use counts, gradients) has the index of the tensor's slot: a copy to
// a set of another size inserts every tensor again.
#include "graph/graph.h"

#include <limits.h>

#include "base/status.h"
#include "base/thread_guard.h"
#include "ggml-backend.h"
#include "tensor/context.h"

// Bytes of the object, 0 if such a graph is impossible. The set has room for `size` nodes and as
// many leafs. A node and a leaf take less than 256 bytes in all arrays together, so that the sum
// can't overflow with 32 bits either.
static size_t graph_size(size_t size, bool grads) {
    if (size > INT_MAX || size > SIZE_MAX / 256) return 0;
    const size_t slots = ggml_hash_size(2 * size);
    const size_t pointers = 2 * size + slots * (grads ? 3 : 1);
    return sizeof(struct ggml_cgraph) + pointers * sizeof(struct ggml_tensor *) +
           slots * sizeof(int32_t) + ggml_bitset_size(slots) * sizeof(ggml_bitset_t);
}

size_t ggml_graph_overhead_custom(size_t size, bool grads) {
    const size_t bytes = graph_size(size, grads);
    if (bytes == 0) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "ggml_graph_overhead_custom: no graph has %zu nodes",
                  size);
        return SIZE_MAX / 2;
    }
    return sizeof(struct ggml_object) + GGML_PAD(bytes, (size_t)GGML_MEM_ALIGN);
}

size_t ggml_graph_overhead(void) {
    return ggml_graph_overhead_custom(GGML_DEFAULT_GRAPH_SIZE, false);
}

// One allocation for everything, so that a graph costs one object of the context.
struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size, bool grads) {
    const size_t bytes = graph_size(size, grads);
    if (bytes == 0) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "ggml_new_graph_custom: no graph has %zu nodes", size);
        return NULL;
    }
    struct ggml_cgraph *graph =
        ggml_context_take(ctx, GGML_OBJECT_TYPE_GRAPH, bytes, "ggml_new_graph_custom");
    if (!graph) return NULL;

    const size_t slots = ggml_hash_size(2 * size);
    struct ggml_tensor **pointers = (struct ggml_tensor **)(void *)(graph + 1);
    *graph = (struct ggml_cgraph){.size = (int)size};
    graph->nodes = pointers;
    graph->leafs = (pointers += size);
    graph->visited_hash_set.size = slots;
    graph->visited_hash_set.keys = (pointers += size);
    pointers += slots;
    if (grads) {
        memset(pointers, 0, 2 * slots * sizeof(pointers[0]));
        graph->grads = pointers;
        graph->grad_accs = (pointers += slots);
        pointers += slots;
    }
    // Only the bits are cleared: a slot's key and use count are set when a tensor is entered.
    graph->use_counts = (int32_t *)(void *)pointers;
    graph->visited_hash_set.used = (ggml_bitset_t *)(graph->use_counts + slots);
    ggml_hash_set_reset(&graph->visited_hash_set);
    return graph;
}

struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx) {
    return ggml_new_graph_custom(ctx, GGML_DEFAULT_GRAPH_SIZE, false);
}

// The first error is kept: later ones mostly follow from it.
void ggml_graph_set_error(struct ggml_cgraph *graph, const char *message) {
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s", message);
    if (!graph->error) graph->error = message;
}

// Empties a graph. Without a number it is a new graph for plans that are kept by number. Costs
// clearing the set's bits, not its keys.
void ggml_graph_clear(struct ggml_cgraph *cgraph) {
    THREAD_GUARD_VOID(cgraph);
    if (!cgraph) return;
    cgraph->n_nodes = 0;
    cgraph->n_leafs = 0;
    cgraph->uid = 0;
    cgraph->error = NULL;
    ggml_hash_set_reset(&cgraph->visited_hash_set);
}

// Copies the set of visited tensors with use counts and gradients. Slots differ between sets of
// different sizes, so that every tensor is inserted again. O(slots).
static bool copy_visited(const struct ggml_cgraph *src, struct ggml_cgraph *dst) {
    const struct ggml_hash_set *set = &src->visited_hash_set;
    for (size_t i = 0; i < set->size; ++i) {
        if (!ggml_bitset_get(set->used, i)) continue;
        const size_t slot = ggml_hash_find_or_insert(&dst->visited_hash_set, set->keys[i]);
        if (slot == GGML_HASHSET_FULL) return false;
        dst->use_counts[slot] = src->use_counts[i];
        if (!src->grads) continue;
        dst->grads[slot] = src->grads[i];
        dst->grad_accs[slot] = src->grad_accs[i];
    }
    return true;
}

// Copies nodes and leafs; the tensors are shared. The copy's number is 0, as it may be changed
// apart from the source.
void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst) {
    if (!src || !dst || src == dst) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_graph_cpy: needs two graphs");
        return;
    }
    ggml_graph_clear(dst);
    if (dst->size < src->n_nodes || dst->size < src->n_leafs || (src->grads && !dst->grads)) {
        ggml_graph_set_error(dst,
                             "ggml_graph_cpy: the destination is smaller than the source or has "
                             "no gradients; create it with a larger size");
        return;
    }
    dst->order = src->order;
    dst->error = src->error;
    if (dst->grads) {
        memset(dst->grads, 0, dst->visited_hash_set.size * sizeof(dst->grads[0]));
        memset(dst->grad_accs, 0, dst->visited_hash_set.size * sizeof(dst->grad_accs[0]));
    }
    if (!copy_visited(src, dst)) {
        ggml_graph_set_error(dst, "ggml_graph_cpy: the destination is too small; create it with a "
                                  "larger size");
        return;
    }
    dst->n_nodes = src->n_nodes;
    dst->n_leafs = src->n_leafs;
    if (src->n_nodes > 0)
        memcpy(dst->nodes, src->nodes, (size_t)src->n_nodes * sizeof(src->nodes[0]));
    if (src->n_leafs > 0)
        memcpy(dst->leafs, src->leafs, (size_t)src->n_leafs * sizeof(src->leafs[0]));
}

// Large enough for the source, with gradients if it has some or the caller wants them.
struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
                                   bool force_grads) {
    if (!cgraph) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_graph_dup: the graph is NULL");
        return NULL;
    }
    int size = MAX(cgraph->size, MAX(cgraph->n_nodes, cgraph->n_leafs));
    const size_t slots = cgraph->visited_hash_set.size;
    // A view (ggml_graph_view()) has no capacity, but the hash set of the whole graph, which is
    // copied.
    if (cgraph->size == 0 && slots / 2 > (size_t)size) size = (int)MIN(slots / 2, INT_MAX);
    struct ggml_cgraph *copy =
        ggml_new_graph_custom(ctx, (size_t)size, cgraph->grads || force_grads);
    if (copy) ggml_graph_cpy(cgraph, copy);
    return copy;
}

// Appends a node without visiting its sources: for graphs that are built by hand.
void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    THREAD_GUARD_VOID(cgraph);
    if (!cgraph || !tensor) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_graph_add_node: the graph or tensor is NULL");
    } else if (ggml_tensor_is_error(tensor)) {
        ggml_graph_set_error(cgraph, ggml_tensor_error(tensor));
    } else if (cgraph->n_nodes >= cgraph->size) {
        ggml_graph_set_error(cgraph,
                             "ggml_graph_add_node: the graph is full; create it with a larger "
                             "size (ggml_new_graph_custom)");
    } else {
        cgraph->uid = 0;
        cgraph->nodes[cgraph->n_nodes++] = tensor;
    }
}

int ggml_graph_size(struct ggml_cgraph *cgraph) {
    return cgraph ? cgraph->size : 0;
}

// Negative indices count from the end.
struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i) {
    const int n = ggml_graph_n_nodes(cgraph);
    if (i < -n || i >= n) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "ggml_graph_node: node %d of %d", i, n);
        return NULL;
    }
    return cgraph->nodes[i < 0 ? n + i : i];
}

struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *cgraph) {
    return cgraph ? cgraph->nodes : NULL;
}

int ggml_graph_n_nodes(struct ggml_cgraph *cgraph) {
    return cgraph ? cgraph->n_nodes : 0;
}

// Linear search: names may change while a tensor is in the graph, so that there is no index of
// them.
static struct ggml_tensor *find_name(struct ggml_tensor **tensors, int n, const char *name) {
    for (int i = 0; i < n; ++i) {
        if (strcmp(tensors[i]->name, name) == 0) return tensors[i];
    }
    return NULL;
}

struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph, const char *name) {
    if (!cgraph || !name) return NULL;
    struct ggml_tensor *leaf = find_name(cgraph->leafs, cgraph->n_leafs, name);
    return leaf ? leaf : find_name(cgraph->nodes, cgraph->n_nodes, name);
}

// The gradient or accumulator of a node: O(1), by the slot of its tensor.
static struct ggml_tensor *by_slot(const struct ggml_cgraph *graph, struct ggml_tensor **array,
                                   const struct ggml_tensor *node) {
    if (!array || !node) return NULL;
    const size_t slot = ggml_hash_find(&graph->visited_hash_set, node);
    const bool known =
        slot != GGML_HASHSET_FULL && ggml_bitset_get(graph->visited_hash_set.used, slot);
    return known ? array[slot] : NULL;
}

struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph,
                                        const struct ggml_tensor *node) {
    return cgraph ? by_slot(cgraph, cgraph->grads, node) : NULL;
}

struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph,
                                            const struct ggml_tensor *node) {
    return cgraph ? by_slot(cgraph, cgraph->grad_accs, node) : NULL;
}

// Works for gradients in a device's buffer and in plain memory.
static void set_one(struct ggml_tensor *tensor) {
    const float one = 1.0f;
    if (tensor->type != GGML_TYPE_F32 || !ggml_is_scalar(tensor) ||
        !(tensor->buffer || tensor->data)) {
        ggml_fail(
            GGML_HOST_INVALID_ARGUMENT,
            "ggml_graph_reset: the gradient of the loss '%s' is not one allocated F32 element",
            tensor->name);
    } else if (tensor->buffer) {
        ggml_backend_tensor_set(tensor, &one, 0, sizeof(one));
    } else {
        memcpy(tensor->data, &one, sizeof(one));
    }
}

// Prepares a training step: gradients of losses become 1, accumulators and the two moments of AdamW
// (sources 2 and 3) 0.
void ggml_graph_reset(struct ggml_cgraph *cgraph) {
    THREAD_GUARD_VOID(cgraph);
    if (!cgraph) return;
    if (!cgraph->grads) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_graph_reset: the graph has no gradients");
        return;
    }
    for (int i = 0; i < cgraph->n_nodes; ++i) {
        struct ggml_tensor *node = cgraph->nodes[i];
        struct ggml_tensor *grad_acc = ggml_graph_get_grad_acc(cgraph, node);
        if (node->op == GGML_OP_OPT_STEP_ADAMW) {
            ggml_set_zero(node->src[2]);
            ggml_set_zero(node->src[3]);
        }
        if (!grad_acc) continue;
        if (node->flags & GGML_TENSOR_FLAG_LOSS) {
            set_one(grad_acc);
        } else {
            ggml_set_zero(grad_acc);
        }
    }
}
