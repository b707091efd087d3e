// SPDX-License-Identifier: MIT
// Reports of placement, and their forms as text and JSON.
#ifndef GGML_SCHED_REPORT_H
#define GGML_SCHED_REPORT_H

#include "base/data/arena.h"
#include "ggml-host.h"

// Belongs to the application, and refers to nothing of the scheduler or the graph.
struct ggml_sched_report {
    struct arena arena; // of everything that the report points to
    struct ggml_sched_split_info *splits;
    struct ggml_sched_node_info *nodes;     // in the order of the graph
    struct ggml_sched_stream_info *streams; // in that of the scheduler
    size_t n_splits, n_nodes, n_streams;
    double seconds; // predicted, as if nothing overlapped
    double elapsed; // predicted, from start to end
    char *text;     // written when first asked for
    char *json;
};

#endif
