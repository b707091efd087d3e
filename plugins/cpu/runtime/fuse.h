// SPDX-License-Identifier: MIT
// Nodes that one kernel computes together.
#ifndef CPU_FUSE_H
#define CPU_FUSE_H

#include "ggml-graph.h"
#include "ggml-impl.h"
#include "runtime/kernel_list.h"

struct cpu_fusion {
    const struct cpu_kernel *kernel; // NULL: nothing to fuse
    struct ggml_tensor *node;        // the last node, whose result is kept
    int n_nodes;                     // with idle ones between
};

// Nothing to compute: views, and results without elements.
static inline bool cpu_is_idle(const struct ggml_tensor *node) {
    return ggml_op_is_empty(node->op) || ggml_nelements(node) == 0;
}

// Whether node i and those after it are computed in one step. [any-thread]
struct cpu_fusion cpu_fuse(const struct ggml_graph *graph, int i);

#endif
