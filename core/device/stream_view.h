// SPDX-License-Identifier: MIT
// A graph of an application in the form that streams get.
#ifndef GGML_DEVICE_STREAM_VIEW_H
#define GGML_DEVICE_STREAM_VIEW_H

#include "ggml-graph.h"
#include "ggml-impl.h"

// Use counts of the graph's nodes, in their order. [any-thread]
void ggml_graph_count_uses(const struct ggml_cgraph *graph, int32_t *out_counts);

// Memory for use counts that is kept from call to call; zero is empty. Freed by ggml_mem_free().
struct use_memory {
    int32_t *counts;
    int32_t capacity;
};

enum { STREAM_VIEW_FEW = 64 };

struct stream_view {
    struct ggml_graph graph;
    int32_t few[STREAM_VIEW_FEW]; // counts of a small graph
    int32_t *own;                 // of a large one without kept memory, or NULL
};

// The view over the graph, which is not in error; it is not moved. kept may be NULL. false with a
// message when memory runs out. stream_view_end() ends it. [stream]
bool stream_view_make(struct stream_view *out_view, const struct ggml_cgraph *graph,
                      struct use_memory *kept);
void stream_view_end(struct stream_view *view);

#endif
