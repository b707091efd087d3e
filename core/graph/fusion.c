// SPDX-License-Identifier: MIT
// Checks that backends make before they compute several nodes in one step: for graphs as streams
// get them, and for ggml's own.
#include "ggml-backend-impl.h"
#include "ggml-impl.h"

// A graph of either kind, so that each check is implemented once.
struct asked {
    int n_nodes;
    struct ggml_tensor *const *nodes;
    const int32_t *counts;           // of uses, by node; NULL:
    const struct ggml_cgraph *graph; // has them by slot
};

// Streams are given counts by node, computed once for each graph.
static struct asked of_stream(const struct ggml_graph *graph) {
    if (!graph) return (struct asked){0};
    return (struct asked){graph->n_nodes, graph->nodes, graph->use_counts, NULL};
}

static struct asked of_application(const struct ggml_cgraph *graph) {
    if (!graph) return (struct asked){0};
    return (struct asked){graph->n_nodes, graph->nodes, NULL, graph};
}

// NULL outside the graph, so that patterns may reach beyond its end.
static struct ggml_tensor *node_at(const struct asked *asked, int64_t i) {
    return i >= 0 && i < asked->n_nodes ? asked->nodes[i] : NULL;
}

// A look-up in the hash set, and 0 for nodes that were added without being visited: nothing is
// fused on a guess.
static int32_t count_by_slot(const struct ggml_cgraph *graph, const struct ggml_tensor *node) {
    if (!graph || !graph->use_counts) return 0;
    const size_t slot = ggml_hash_find(&graph->visited_hash_set, node);
    const bool visited =
        slot != GGML_HASHSET_FULL && ggml_bitset_get(graph->visited_hash_set.used, slot);
    return visited ? graph->use_counts[slot] : 0;
}

static int32_t use_count(const struct asked *asked, int64_t i) {
    const struct ggml_tensor *node = node_at(asked, i);
    if (!node) return 0;
    return asked->counts ? asked->counts[i] : count_by_slot(asked->graph, node);
}

// Whether exactly n_uses sources refer to the node. False for views and outputs, which are read by
// others than the counts know.
static bool has_n_uses(const struct asked *asked, int64_t i, int32_t n_uses) {
    const struct ggml_tensor *node = node_at(asked, i);
    return node && !node->view_src && !(node->flags & GGML_TENSOR_FLAG_OUTPUT) &&
           use_count(asked, i) == n_uses;
}

// Position k of a list of nodes: node_idxs[k], or first + k without a list.
static int64_t position(const int *node_idxs, int first, int k) {
    return node_idxs ? node_idxs[k] : (int64_t)first + k;
}

// Nodes that the caller excluded from computing can't be part of a fusion.
static bool is_computed_op(const struct ggml_tensor *node, enum ggml_op op) {
    return node && node->op == op && (node->flags & GGML_TENSOR_FLAG_COMPUTE);
}

// Whether consecutive positions form a chain: each node but the last has one use, by the next one
// as source 0 or 1, and all have one shape. Then no other node can miss the intermediate results.
// O(n).
static bool chain_matches(const struct asked *asked, const int *node_idxs, int first,
                          const enum ggml_op *ops, int n) {
    const struct ggml_tensor *previous = NULL;
    if (!ops || n < 1) return false;
    for (int k = 0; k < n; ++k) {
        const int64_t i = position(node_idxs, first, k);
        const struct ggml_tensor *node = node_at(asked, i);
        if (!is_computed_op(node, ops[k])) return false;
        if (k < n - 1 && !has_n_uses(asked, i, 1)) return false;
        if (previous && node->src[0] != previous && node->src[1] != previous) return false;
        if (previous && !ggml_are_same_shape(node, previous)) return false;
        previous = node;
    }
    return true;
}

// Members of a candidate for fusion.
struct subgraph {
    const struct asked *asked;
    const int *node_idxs; // or NULL: consecutive from first
    int first;
    int count;
};

static const struct ggml_tensor *member(const struct subgraph *sub, int k) {
    return node_at(sub->asked, position(sub->node_idxs, sub->first, k));
}

// Linear: members are a handful.
static bool contains(const struct subgraph *sub, const struct ggml_tensor *tensor) {
    for (int k = 0; k < sub->count; ++k) {
        if (member(sub, k) == tensor) return true;
    }
    return false;
}

// How often members after k read member k.
static int32_t uses_inside(const struct subgraph *sub, int k) {
    const struct ggml_tensor *tensor = member(sub, k);
    int32_t uses = 0;
    for (int later = k + 1; later < sub->count; ++later) {
        for (int i = 0; i < GGML_MAX_SRC; ++i) {
            uses += member(sub, later)->src[i] == tensor;
        }
    }
    return uses;
}

// Whether a viewed tensor is constant while graphs are computed: weights are, parameters are not,
// since optimiser steps write to them.
static bool is_constant(const struct ggml_tensor *tensor) {
    return tensor->buffer && tensor->buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS &&
           !(tensor->flags & GGML_TENSOR_FLAG_PARAM);
}

// Whether nothing outside of the subgraph would notice if member k were never written.
static bool is_internal(const struct subgraph *sub, int k) {
    const struct ggml_tensor *tensor = member(sub, k);
    const int64_t i = position(sub->node_idxs, sub->first, k);
    if (tensor->flags & GGML_TENSOR_FLAG_OUTPUT) return false;
    if (uses_inside(sub, k) != use_count(sub->asked, i)) return false;
    for (const struct ggml_tensor *root = tensor->view_src; root; root = root->view_src) {
        if (!contains(sub, root) && !is_constant(root)) return false;
    }
    return true;
}

static bool is_listed(int64_t value, const int *list, int n) {
    for (int i = 0; i < n; ++i) {
        if (list[i] == value) return true;
    }
    return false;
}

// The operations in order, and no member but the outputs is visible outside. O(n^2) for n members,
// of which there are a handful.
static bool subgraph_matches(const struct subgraph *sub, const enum ggml_op *ops,
                             const int *outputs, int num_outputs) {
    if (!ops || sub->count < 1 || (num_outputs > 0 && !outputs)) return false;
    for (int k = 0; k < sub->count; ++k) {
        if (!is_computed_op(member(sub, k), ops[k])) return false;
    }
    for (int k = 0; k < sub->count; ++k) {
        const int64_t i = position(sub->node_idxs, sub->first, k);
        if (!is_listed(i, outputs, num_outputs) && !is_internal(sub, k)) return false;
    }
    return true;
}

// --- graphs as streams see them

int32_t ggml_graph_use_count(const struct ggml_graph *graph, int i) {
    const struct asked asked = of_stream(graph);
    return use_count(&asked, i);
}

bool ggml_graph_has_n_uses(const struct ggml_graph *graph, int i, int32_t n_uses) {
    const struct asked asked = of_stream(graph);
    return has_n_uses(&asked, i, n_uses);
}

bool ggml_graph_can_fuse(const struct ggml_graph *graph, int i, const enum ggml_op *ops, int n) {
    const struct asked asked = of_stream(graph);
    return chain_matches(&asked, NULL, i, ops, n);
}

bool ggml_graph_can_fuse_at(const struct ggml_graph *graph, const int *idxs,
                            const enum ggml_op *ops, int n) {
    const struct asked asked = of_stream(graph);
    return idxs && chain_matches(&asked, idxs, 0, ops, n);
}

bool ggml_graph_can_fuse_subgraph(const struct ggml_graph *graph, int i, int n,
                                  const enum ggml_op *ops, const int *outputs, int n_outputs) {
    const struct asked asked = of_stream(graph);
    const struct subgraph sub = {.asked = &asked, .first = i, .count = n};
    return subgraph_matches(&sub, ops, outputs, n_outputs);
}

bool ggml_graph_can_fuse_subgraph_at(const struct ggml_graph *graph, const int *idxs, int n,
                                     const enum ggml_op *ops, const int *outputs, int n_outputs) {
    const struct asked asked = of_stream(graph);
    const struct subgraph sub = {.asked = &asked, .node_idxs = idxs, .count = n};
    return idxs && subgraph_matches(&sub, ops, outputs, n_outputs);
}

// --- ggml's own

int32_t ggml_node_get_use_count(const struct ggml_cgraph *cgraph, int node_idx) {
    const struct asked asked = of_application(cgraph);
    return use_count(&asked, node_idx);
}

bool ggml_node_has_n_uses(const struct ggml_cgraph *cgraph, int node_idx, int32_t n_uses) {
    const struct asked asked = of_application(cgraph);
    return has_n_uses(&asked, node_idx, n_uses);
}

bool ggml_can_fuse_ext(const struct ggml_cgraph *cgraph, const int *node_idxs,
                       const enum ggml_op *ops, int num_ops) {
    const struct asked asked = of_application(cgraph);
    return node_idxs && chain_matches(&asked, node_idxs, 0, ops, num_ops);
}

bool ggml_can_fuse(const struct ggml_cgraph *cgraph, int node_idx, const enum ggml_op *ops,
                   int num_ops) {
    const struct asked asked = of_application(cgraph);
    return chain_matches(&asked, NULL, node_idx, ops, num_ops);
}

bool ggml_can_fuse_subgraph_ext(const struct ggml_cgraph *cgraph, const int *node_idxs, int count,
                                const enum ggml_op *ops, const int *outputs, int num_outputs) {
    const struct asked asked = of_application(cgraph);
    const struct subgraph sub = {.asked = &asked, .node_idxs = node_idxs, .count = count};
    return node_idxs && subgraph_matches(&sub, ops, outputs, num_outputs);
}

bool ggml_can_fuse_subgraph(const struct ggml_cgraph *cgraph, int node_idx, int count,
                            const enum ggml_op *ops, const int *outputs, int num_outputs) {
    const struct asked asked = of_application(cgraph);
    const struct subgraph sub = {.asked = &asked, .first = node_idx, .count = count};
    return subgraph_matches(&sub, ops, outputs, num_outputs);
}

// Each edge is {destination, source slot, origin}, positions relative to start_idx.
bool ggml_check_edges(const struct ggml_cgraph *cgraph, int start_idx, const int (*edges)[3],
                      int num_edges) {
    const struct asked asked = of_application(cgraph);
    if (!edges && num_edges > 0) return false;
    for (int k = 0; k < num_edges; ++k) {
        const struct ggml_tensor *destination = node_at(&asked, (int64_t)start_idx + edges[k][0]);
        const struct ggml_tensor *origin = node_at(&asked, (int64_t)start_idx + edges[k][2]);
        const int slot = edges[k][1];
        if (!destination || !origin || slot < 0 || slot >= GGML_MAX_SRC) return false;
        if (destination->src[slot] != origin) return false;
    }
    return true;
}
