// SPDX-License-Identifier: MIT
// An order of a graph's nodes that is being improved, and its two improvements. Knows nothing of
// Vulkan.
#ifndef GPU_ORDER_H
#define GPU_ORDER_H

#include "gpu/graph/depend.h"
#include "gpu/graph/plan.h"

// Nodes go by their number, see depend.h. A unit is one node, or several that one launch computes:
// they stand side by side.
struct gpu_order {
    const struct ggml_graph *graph;
    const struct gpu_depend *depend;
    int n;
    int32_t *at;    // number of the node at each place
    int32_t *place; // of each node
    int32_t *unit;  // of each node: the first node of its unit
    int32_t *size;  // of each unit, by its first node
    int32_t *mark;  // of each node, for the pass that is running
    int32_t *spare; // n numbers, likewise
    int32_t *left;  // of each memory, likewise
    int32_t stamp;  // no mark is larger
};

// Bytes that are used at once, at most, by what nodes write, if they are computed in this order and
// memory is given out as late and taken back as early as can be.
size_t gpu_order_peak(struct gpu_order *order, const int32_t *at);
// Makes units of nodes that the fusions of the plan compute together, and moves those next to each
// other that are not. Returns how many units needed moves.
int gpu_order_gather(struct gpu_order *order, struct gpu_plan *plan);
// How often in this order a launch waits for one that was begun since the last wait.
int gpu_order_waits(struct gpu_order *order);
// Moves units that don't depend on each other next to each other, where that takes fewer waits and
// not more than `limit` bytes at once. Returns whether it did.
bool gpu_order_group(struct gpu_order *order, size_t limit);

// Whether the node is launched, alone or with its unit.
static inline bool gpu_order_launches(const struct gpu_order *order, int32_t node) {
    const struct ggml_tensor *tensor = order->graph->nodes[node];
    return !ggml_op_is_empty(tensor->op) && (tensor->flags & GGML_TENSOR_FLAG_COMPUTE);
}

#endif
