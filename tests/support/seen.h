// SPDX-License-Identifier: MIT
// A graph as streams see it, for tests that call what streams are made of.
#ifndef TESTS_SUPPORT_SEEN_H
#define TESTS_SUPPORT_SEEN_H

#include <stdlib.h>

#include "ggml-graph.h"
#include "ggml-impl.h"

enum { SEEN_MAX_NODES = 8192 };

// Good until the next call.
static inline struct ggml_graph seen(const struct ggml_cgraph *graph) {
    static int32_t counts[SEEN_MAX_NODES];
    const struct ggml_graph view = {
        .size = sizeof(view),
        .n_nodes = graph->n_nodes,
        .nodes = graph->nodes,
        .use_counts = counts,
        .uid = graph->uid,
    };
    if (graph->n_nodes > SEEN_MAX_NODES) abort();
    for (int i = 0; i < graph->n_nodes; ++i)
        counts[i] = ggml_node_get_use_count(graph, i);
    return view;
}

#endif
