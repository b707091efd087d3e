// SPDX-License-Identifier: MIT
// Failures of building a graph.
#ifndef GGML_GRAPH_GRAPH_H
#define GGML_GRAPH_GRAPH_H

#include "ggml-impl.h"

// Makes the graph incomputable (the first reason is kept) and records the failure for the calling
// thread. The message must live as long as the graph. [stream]
void ggml_graph_set_error(struct ggml_cgraph *graph, const char *message);

#endif
