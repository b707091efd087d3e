// SPDX-License-Identifier: MIT
// Finds nodes that have a kernel in common, and makes sure that nothing else reads what lies
// between them, as it is not stored.
#include "runtime/fuse.h"

#include "ggml-plugin.h"
#include "ops/recurrent/recurrence.h"

static bool is_disabled(void) {
    const char *value = ggml_sdk_config("GGML_CPU_DISABLE_FUSION");
    return value && strcmp(value, "1") == 0;
}

// RMS_NORM followed by MUL is computed as one kernel, if the graph doesn't use the norm elsewhere
// and the kernel accepts the layout: one pass over memory less. Of two norms the kernel
// computes the first operand, so that the second can't be left to it.
static struct cpu_fusion fuse_norm(const struct ggml_graph *graph, int i) {
    static const enum ggml_op ops[] = {GGML_OP_RMS_NORM, GGML_OP_MUL};
    if (i + 1 >= graph->n_nodes || !ggml_graph_can_fuse(graph, i, ops, 2))
        return (struct cpu_fusion){0};
    struct ggml_tensor *node = graph->nodes[i + 1];
    if (node->src[0]->op == GGML_OP_RMS_NORM && node->src[0] != graph->nodes[i])
        return (struct cpu_fusion){0};
    return (struct cpu_fusion){cpu_kernel_find_sub(node, CPU_SUB_RMS_NORM_MUL), node, 2};
}

// --- recurrences

static int count_of(const struct ggml_tensor *tensor, const struct ggml_tensor *reader) {
    int n = 0;
    for (int s = 0; s < GGML_MAX_SRC; ++s)
        n += reader->src[s] == tensor;
    return n;
}

// A recurrence, and the copy of its new states.
struct kept_states {
    const struct ggml_graph *graph;
    const struct ggml_tensor *node, *copy;
    size_t output_bytes; // the states follow
};

static bool leaves_states(const struct kept_states *states, int i, int depth);

// Whether node k, which refers to node i, reads no new states but to copy them: it may be a view of
// the output.
static bool may_refer(const struct kept_states *states, int i, int k, int depth) {
    const struct ggml_tensor *tensor = states->graph->nodes[i], *reader = states->graph->nodes[k];
    const struct ggml_tensor *view = states->copy->src[0];
    const int32_t uses = ggml_graph_use_count(states->graph, k);
    if (reader == states->copy) return tensor == view;
    if (reader == view) return tensor == states->node && uses == 1;
    if (reader->view_src != states->node) return tensor != states->node;
    const bool shows_output = reader->view_offs + ggml_nbytes(reader) <= states->output_bytes;
    return shows_output && cpu_is_idle(reader) &&
           (uses == 0 || leaves_states(states, k, depth + 1));
}

// Whether all nodes that refer to node i, the recurrence or a view of it, are in this graph, which
// may be part of another one, and leave the new states alone. They mostly follow soon. Views of
// views are deeper by one.
static bool leaves_states(const struct kept_states *states, int i, int depth) {
    enum { DEPTH = 8 };
    const struct ggml_graph *graph = states->graph;
    int32_t others = ggml_graph_use_count(graph, i);
    bool leaves = others > 0 && depth < DEPTH;
    for (int k = i + 1; k < graph->n_nodes && leaves && others > 0; ++k) {
        const int n = count_of(graph->nodes[i], graph->nodes[k]);
        others -= n;
        leaves = n == 0 || may_refer(states, i, k, depth);
    }
    return leaves && others == 0;
}

// A recurrence, followed by a copy of its new states, stores them where the copy would. Only idle
// nodes may lie between, and the states may not be read anywhere else.
static struct cpu_fusion fuse_recurrence(const struct ggml_graph *graph, int i) {
    const struct cpu_fusion none = {0};
    const struct ggml_tensor *node = graph->nodes[i];
    int last = i + 1;
    while (last < graph->n_nodes && cpu_is_idle(graph->nodes[last]))
        ++last;
    if (last >= graph->n_nodes) return none;
    struct ggml_tensor *copy = graph->nodes[last];
    const struct ggml_tensor *view = copy->src[0];
    if (copy->op != GGML_OP_CPY || !view || view->view_src != node) return none;
    if (!(node->flags & copy->flags & GGML_TENSOR_FLAG_COMPUTE)) return none;
    if ((node->flags | view->flags) & GGML_TENSOR_FLAG_OUTPUT || node->view_src) return none;
    if (!cpu_kernel_find(node)) return none;
    const struct cpu_kernel *kernel = cpu_kernel_find_sub(copy, CPU_SUB_KEPT_STATES);
    const struct kept_states states = {graph, node, copy, view->view_offs};
    if (!kernel || !leaves_states(&states, i, 0)) return none;
    return (struct cpu_fusion){kernel, copy, last + 1 - i};
}

struct cpu_fusion cpu_fuse(const struct ggml_graph *graph, int i) {
    const struct cpu_fusion none = {0};
    const struct ggml_tensor *node = graph->nodes[i];
    struct recurrence recurrence;
    const bool recurs = recurrence_of(node, &recurrence);
    if ((node->op != GGML_OP_RMS_NORM && !recurs) || is_disabled()) return none;
    return recurs ? fuse_recurrence(graph, i) : fuse_norm(graph, i);
}
