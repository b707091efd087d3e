// SPDX-License-Identifier: MIT
// ggml-graph.h: a graph as a stream sees it. The host makes it for each call from the graph that an
// application built, or from a part of it.
//
// Why not struct ggml_cgraph: that is ggml's, changes with it, and has a hash table that parts of a
// graph don't have. This one has what a stream needs and may grow.
#ifndef GGML_GRAPH_H
#define GGML_GRAPH_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// The struct, `nodes` and `use_counts` may be read during the call that they are passed to; the
// tensors until the stream is synchronised, or until the plan is freed that they were passed for.
// Nothing is written, but the order of `nodes` by graph_optimize. A later 1.x contract names the
// reserved slots, which are zero until then: the struct never changes size or offsets.
//
// What `structure` and `uid` are for: a stream that records commands for a device keeps them under
// `structure`, and replays them for the next graph with the same number after exchanging addresses;
// with an equal `uid` not even that is needed.
struct ggml_graph {
    uint32_t size;   // bytes of the struct that the host knows
    int32_t n_nodes; // >= 0
    // In an order that respects dependencies.
    struct ggml_tensor **nodes;
    // By index of the node: how often it is the source of a node of the graph that the application
    // built, of which this may be a part. 0: never, or the host doesn't know. Not NULL if there are
    // nodes. graph_optimize leaves it as it is: it belongs to the order that
    // `nodes` came in.
    const int32_t *use_counts;
    // Two graphs that one stream is given, with this equal and not 0, are the same but for
    // addresses: as many nodes and, at each index, the same operation, parameters, type, extents,
    // strides, flags, offset into the viewed tensor and use count; the same of each source; and a
    // source, or viewed tensor, of the one is a node, is of another node's sources or stands alone
    // as it does in the other. `data`, `buffer`, `extra`, `name` and the tensors themselves may
    // differ. 0: not known.
    uint64_t structure;
    // Two graphs that one stream is given, with this equal and not 0, have the same nodes in the
    // same order, in which and in whose sources nothing has changed but the data. 0: not known.
    uint64_t uid;
    void *reserved[11]; // NULL
};

// --- fusion queries ------------------------------------------------------------------------------

// For kernels that compute several nodes as one: whether the results between are read by no other
// node else. A host that does not know the uses of a node says 0, and these return false. Indices
// out of range: false.

// Uses of node i; 0 if there is no such node. [any-thread]
GGML_API int32_t ggml_graph_use_count(const struct ggml_graph *graph, int i);
// Exactly n_uses, not a view, not an output. [any-thread]
GGML_API bool ggml_graph_has_n_uses(const struct ggml_graph *graph, int i, int32_t n_uses);

// Whether the n nodes from node i form the chain `ops`: of one shape, each fed by the one before,
// which nothing else uses. As in graph_compute:
//
//     static const enum ggml_op norm_mul[] = {GGML_OP_RMS_NORM, GGML_OP_MUL};
//     if (ggml_graph_can_fuse(graph, i, norm_mul, 2)) {
//         rms_norm_mul(graph->nodes[i], graph->nodes[i + 1]); // writes the second node's result
//         only i += 2;
//     }
// [any-thread]
GGML_API bool ggml_graph_can_fuse(const struct ggml_graph *graph, int i, const enum ggml_op *ops,
                                  int n);
// The same for the nodes at idxs. [any-thread]
GGML_API bool ggml_graph_can_fuse_at(const struct ggml_graph *graph, const int *idxs,
                                     const enum ggml_op *ops, int n);
// Whether the n nodes from node i have these ops, and nothing outside uses any but the n_outputs
// nodes whose indices `outputs` lists. [any-thread]
GGML_API bool ggml_graph_can_fuse_subgraph(const struct ggml_graph *graph, int i, int n,
                                           const enum ggml_op *ops, const int *outputs,
                                           int n_outputs);
// The same for the nodes at idxs. [any-thread]
GGML_API bool ggml_graph_can_fuse_subgraph_at(const struct ggml_graph *graph, const int *idxs,
                                              int n, const enum ggml_op *ops, const int *outputs,
                                              int n_outputs);

#ifdef __cplusplus
}
#endif

#endif
