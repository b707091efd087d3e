// SPDX-License-Identifier: MIT
// Nodes that one launch can compute together (operator fusion): which there are, and whether nodes
// of a graph are such. What is found is described by tensors; the plugin makes the launch.
#ifndef GPU_FUSE_H
#define GPU_FUSE_H

#include "ggml-graph.h"
#include "ggml-impl.h"

enum { GPU_MAX_FUSED = 6, GPU_FUSION_OPS = 3, GPU_MAX_TERMS = GPU_MAX_FUSED + 1 };

enum gpu_fusion_number {
#define GPU_FUSION_ROW(name, ...) GPU_FUSION_##name,
#include "gpu/graph/fuse_list.inl"
    GPU_FUSION_COUNT,
};

enum gpu_fusion_shape { GPU_FUSION_CHAIN, GPU_FUSION_JOIN };

// A row of fuse_list.inl.
struct gpu_fusion {
    const char *name;
    enum gpu_fusion_shape shape;
    int least, most;
    enum ggml_op ops[GPU_FUSION_OPS];
};

// Nodes that may be fused: those at idxs[0] ... idxs[n - 1] of the graph, with the operations of a
// fusion.
struct gpu_window {
    const struct ggml_graph *graph;
    const int *idxs;
    int n;
    enum ggml_op ops[GPU_MAX_FUSED];
};

// Nodes that a single launch can compute. It writes the result of the last alone.
struct gpu_fused {
    enum gpu_fusion_number fusion;
    int n; // nodes, in order
    const struct ggml_tensor *nodes[GPU_MAX_FUSED];
    const struct ggml_tensor *dst; // the last node
    // What it reads beside the sources of nodes[0]:
    //   norm       the weight and, with n == 3, the term
    //   glu        the product that the function is applied to, and the one it is multiplied with
    //   bias       the tensor that is added; operands[0] repeats to dst
    //   add_chain  all n_operands terms, each of the shape of dst, packed F32
    //   rope_rows  the numbers of the rows
    //   mask       the mask
    int n_operands;
    const struct ggml_tensor *operands[GPU_MAX_TERMS];
    // glu only: dst overlaps what is read. The result has to be made where operands[0] lies, which
    // is packed as dst is, and copied from there.
    bool indirect;
};

// All rows, in order. [any-thread]
const struct gpu_fusion *gpu_fusions(int *out_count);
// Whether a node may be the k-th of the fusion. [any-thread]
bool gpu_fusion_takes(const struct gpu_fusion *fusion, int k, const struct ggml_tensor *node);
// Which fusions a comma-separated list of names switches off, one bit each; "1": all. [any-thread]
uint32_t gpu_fusions_named(const char *list);
// Whether the first nodes of the window can be computed together by this fusion. Tensors may have
// no memory yet: then nothing overlaps. [any-thread]
bool gpu_fusion_match(enum gpu_fusion_number fusion, const struct gpu_window *window,
                      struct gpu_fused *out_fused);

#endif
