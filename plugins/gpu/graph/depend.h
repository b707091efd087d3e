// SPDX-License-Identifier: MIT
// Which nodes of a graph must come before which, through the memory that they share. Knows nothing
// of Vulkan.
#ifndef GPU_DEPEND_H
#define GPU_DEPEND_H

#include "ggml-graph.h"
#include "ggml-impl.h"

// Nodes go by their number: the index in the graph that this was made of. So does memory, with
// numbers of its own: a tensor that is no view, or several whose bytes overlap.
struct gpu_depend {
    const struct ggml_graph *graph;
    int n;
    int32_t *first_before;  // of each node, and the end
    int32_t *before;        // nodes that must come before it, some more than once; all smaller
    int32_t *user;          // of each node: the last that reads it, or -1
    int32_t *first_touched; // of each node, and the end
    int32_t *touched;       // memory that it uses, its own first
    int n_memories;
    size_t *bytes;      // of memory that begins with the node of that number, else 0
    int32_t *n_touches; // of memory; -1: is kept to the end
    void *block;
    size_t block_bytes;
};

// False: no memory, or no order can be told (a node comes twice). gpu_depend_free() ends it.
// [stream]
bool gpu_depend_make(struct gpu_depend *out_depend, const struct ggml_graph *graph);
void gpu_depend_free(struct gpu_depend *depend);

// Nodes that must come before the node.
static inline const int32_t *gpu_depend_before(const struct gpu_depend *depend, int32_t node,
                                               int32_t *out_n) {
    *out_n = depend->first_before[node + 1] - depend->first_before[node];
    return &depend->before[depend->first_before[node]];
}

#endif
