// SPDX-License-Identifier: MIT
// Nodes that one kernel computes together.
#ifndef CPU_FUSE_H
#define CPU_FUSE_H

#include "ggml-graph.h"
#include "runtime/kernel_list.h"

struct cpu_fusion {
    const struct cpu_kernel *kernel; // NULL: nothing to fuse
    struct ggml_tensor *node;        // the last node, whose result is kept
    int n_nodes;
};

// Whether node i and those after it are computed in one step. [any-thread]
struct cpu_fusion cpu_fuse(const struct ggml_graph *graph, int i);

#endif
