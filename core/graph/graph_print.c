// SPDX-License-Identifier: MIT
// Graphs as text: a log listing and a Graphviz file.
#include <errno.h>

#include "base/status.h"
#include "ggml-impl.h"

void ggml_graph_print(const struct ggml_cgraph *cgraph) {
    if (!cgraph) return;
    GGML_LOG_INFO("=== GRAPH ===\nn_nodes = %d\n", cgraph->n_nodes);
    for (int i = 0; i < cgraph->n_nodes; ++i) {
        const struct ggml_tensor *node = cgraph->nodes[i];
        GGML_LOG_INFO(" - %3d: [%5lld, %5lld, %5lld] %16s %s '%s'\n", i, (long long)node->ne[0],
                      (long long)node->ne[1], (long long)node->ne[2], ggml_op_desc(node),
                      (node->flags & GGML_TENSOR_FLAG_PARAM) ? "x"
                      : ggml_graph_get_grad(cgraph, node)    ? "g"
                                                             : " ",
                      node->name);
    }
    GGML_LOG_INFO("n_leafs = %d\n", cgraph->n_leafs);
    for (int i = 0; i < cgraph->n_leafs; ++i) {
        const struct ggml_tensor *leaf = cgraph->leafs[i];
        GGML_LOG_INFO(" - %3d: [%5lld, %5lld] %8s %16s\n", i, (long long)leaf->ne[0],
                      (long long)leaf->ne[1], ggml_op_name(leaf->op), leaf->name);
    }
    GGML_LOG_INFO("========================================\n");
}

// Escapes the characters that end a field of a Graphviz record.
static void print_quoted(FILE *file, const char *text) {
    for (; *text; ++text) {
        if (strchr("\"\\<>{}|", *text)) fputc('\\', file);
        fputc(*text, file);
    }
}

// One record per tensor, with name, type, operation and extents.
static void print_vertex(FILE *file, const struct ggml_tensor *tensor, const char *colour) {
    fprintf(file, "  \"%p\" [style=filled fillcolor=%s shape=record label=\"", (const void *)tensor,
            colour);
    print_quoted(file, tensor->name);
    fprintf(file, " (%s)|%s [%lld, %lld, %lld, %lld]|", ggml_type_name(tensor->type),
            ggml_op_desc(tensor), (long long)tensor->ne[0], (long long)tensor->ne[1],
            (long long)tensor->ne[2], (long long)tensor->ne[3]);
    print_quoted(file, tensor->op == GGML_OP_NONE ? "" : ggml_op_symbol(tensor->op));
    fprintf(file, "\"];\n");
}

static void print_edges(FILE *file, const struct ggml_tensor *tensor) {
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (!tensor->src[i]) continue;
        fprintf(file, "  \"%p\" -> \"%p\" [label=\"src %d\"];\n", (void *)tensor->src[i],
                (const void *)tensor, i);
    }
}

// Colours: parameters, nodes of the backward graph only, nodes with gradients, all others.
static const char *node_colour(const struct ggml_cgraph *forward, const struct ggml_cgraph *graph,
                               struct ggml_tensor *node) {
    if (node->flags & GGML_TENSOR_FLAG_PARAM) return "yellow";
    if (forward && !ggml_hash_contains(&forward->visited_hash_set, node)) return "lightblue";
    return ggml_graph_get_grad(graph, node) ? "lightgreen" : "white";
}

// Graphviz: gb is the backward graph, cgraph the forward one.
void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph,
                         const char *filename) {
    const struct ggml_cgraph *graph = gb ? gb : cgraph;
    if (!graph || !filename) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_graph_dump_dot: the graph or file name is NULL");
        return;
    }
    FILE *file = ggml_fopen(filename, "w");
    if (!file) {
        ggml_fail(GGML_HOST_IO_ERROR, "ggml_graph_dump_dot: can't write '%s': %s", filename,
                  strerror(errno));
        return;
    }
    fprintf(file, "digraph G {\n  rankdir=TB;\n");
    for (int i = 0; i < graph->n_leafs; ++i) {
        print_vertex(file, graph->leafs[i], "pink");
        print_edges(file, graph->leafs[i]);
    }
    for (int i = 0; i < graph->n_nodes; ++i) {
        print_vertex(file, graph->nodes[i],
                     node_colour(gb ? cgraph : NULL, graph, graph->nodes[i]));
        print_edges(file, graph->nodes[i]);
    }
    fprintf(file, "}\n");
    if (fclose(file) != 0)
        ggml_fail(GGML_HOST_IO_ERROR, "ggml_graph_dump_dot: '%s' is incomplete", filename);
}
