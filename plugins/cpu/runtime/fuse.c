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
// and the kernel accepts the layout: one pass over memory less.
static struct cpu_fusion fuse_norm(const struct ggml_graph *graph, int i) {
    static const enum ggml_op ops[] = {GGML_OP_RMS_NORM, GGML_OP_MUL};
    if (i + 1 >= graph->n_nodes || !ggml_graph_can_fuse(graph, i, ops, 2))
        return (struct cpu_fusion){0};
    struct ggml_tensor *node = graph->nodes[i + 1];
    return (struct cpu_fusion){cpu_kernel_find_sub(node, CPU_SUB_RMS_NORM_MUL), node, 2};
}

// --- recurrences

static int count_of(const struct ggml_tensor *tensor, const struct ggml_tensor *reader) {
    int n = 0;
    for (int s = 0; s < GGML_MAX_SRC; ++s)
        n += reader->src[s] == tensor;
    return n;
}

// Whether all nodes that refer to node i are known, and in this graph, which may be part of another
// one. They mostly follow soon.
static bool is_used_here(const struct ggml_graph *graph, int i) {
    int32_t others = ggml_graph_use_count(graph, i);
    if (others == 0) return false;
    for (int k = i + 1; k < graph->n_nodes && others > 0; ++k)
        others -= count_of(graph->nodes[i], graph->nodes[k]);
    return others == 0;
}

// A recurrence, and the copy of its new states.
struct kept_states {
    const struct ggml_tensor *node, *copy;
    size_t output_bytes; // the states follow
};

// Whether a view of the recurrence shows nothing but its output.
static bool shows_output(const struct kept_states *states, const struct ggml_tensor *view) {
    return view->view_offs + ggml_nbytes(view) <= states->output_bytes;
}

// Whether node k reads new states, or is a view of them, by which other nodes may.
static bool reads_states(const struct kept_states *states, const struct ggml_graph *graph, int k) {
    const struct ggml_tensor *reader = graph->nodes[k], *view = states->copy->src[0];
    if (reader == view || reader == states->copy) return false;
    const bool is_view = reader->view_src == states->node;
    bool reads = is_view && !(shows_output(states, reader) && is_used_here(graph, k));
    for (int s = 0; s < GGML_MAX_SRC && !reads; ++s) {
        const struct ggml_tensor *src = reader->src[s];
        if (src == states->node)
            reads = !(is_view && cpu_is_idle(reader));
        else
            reads = src && src->view_src == states->node && !shows_output(states, src);
    }
    return reads;
}

// Index of a node in [begin, end), or end.
static int find(const struct ggml_graph *graph, int begin, int end,
                const struct ggml_tensor *node) {
    int i = begin;
    while (i < end && graph->nodes[i] != node)
        ++i;
    return i;
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
    const int at = find(graph, i + 1, last, view);
    if (!kernel || at == last || !is_used_here(graph, i) || !is_used_here(graph, at)) return none;
    const struct kept_states states = {node, copy, view->view_offs};
    for (int k = i + 1; k < graph->n_nodes; ++k)
        if (reads_states(&states, graph, k)) return none;
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
