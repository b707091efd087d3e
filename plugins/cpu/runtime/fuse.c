// SPDX-License-Identifier: MIT
// RMS_NORM followed by MUL, the one pair with a kernel of its own; ggml_graph_can_fuse() decides
// whether anything else reads what lies between them.
#include "runtime/fuse.h"

#include "ggml-plugin.h"

static bool is_disabled(void) {
    const char *value = ggml_sdk_config("GGML_CPU_DISABLE_FUSION");
    return value && strcmp(value, "1") == 0;
}

// RMS_NORM followed by MUL is computed as one kernel, if the graph doesn't use the norm elsewhere
// and the kernel accepts the layout: one pass over memory less.
struct cpu_fusion cpu_fuse(const struct ggml_graph *graph, int i) {
    static const enum ggml_op ops[] = {GGML_OP_RMS_NORM, GGML_OP_MUL};
    const struct cpu_fusion none = {0};
    if (graph->nodes[i]->op != ops[0] || i + 1 >= graph->n_nodes || is_disabled()) return none;
    if (!ggml_graph_can_fuse(graph, i, ops, 2)) return none;
    struct ggml_tensor *node = graph->nodes[i + 1];
    return (struct cpu_fusion){cpu_kernel_find_sub(node, CPU_SUB_RMS_NORM_MUL), node, 2};
}
