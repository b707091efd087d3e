// SPDX-License-Identifier: MIT
// The order in which the plugin would rather compute a graph.
#ifndef GPU_REORDER_H
#define GPU_REORDER_H

#include "gpu/graph/plan.h"

// Changes the order of the graph's nodes, and nothing else, where that saves launches or waits
// between them: see order.h. Every node stays behind what it depends on, memory that is shared
// through views or addresses included. The fusions that count are those of the plan, which is empty
// afterwards. The same graph gets the same order each time. Without memory nothing changes.
// [stream]
void gpu_reorder(struct ggml_graph *graph, struct gpu_plan *plan);

#endif
