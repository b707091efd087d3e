// SPDX-License-Identifier: MIT
// An order of a graph's nodes that is being improved, and its two improvements. Knows nothing of
// Vulkan.
#ifndef VK_ORDER_H
#define VK_ORDER_H

#include "plan/depend.h"
#include "plan/plan.h"

// Nodes go by their number, see depend.h. A unit is one node, or several that one launch computes:
// they stand side by side.
struct vk_order {
    const struct ggml_graph *graph;
    const struct vk_depend *depend;
    int n;
    int32_t *at;    // number of the node at each place
    int32_t *place; // of each node
    int32_t *unit;  // of each node: the first node of its unit
    int32_t *size;  // of each unit, by its first node
    int32_t *mark;  // of each node, for whoever is at work
    int32_t *spare; // n numbers, likewise
    int32_t *left;  // of each memory, likewise
    int32_t stamp;  // no mark is larger
};

// Bytes that are used at once, at most, by what nodes write, if they are computed in this order and
// memory is given out as late and taken back as early as can be.
size_t vk_order_peak(struct vk_order *order, const int32_t *at);
// Makes units of nodes that the fusions of the plan compute together, and moves those next to each
// other that are not. Answers how many units needed moves.
int vk_order_gather(struct vk_order *order, struct vk_plan *plan);
// How often in this order a launch waits for one that was begun since the last wait.
int vk_order_waits(struct vk_order *order);
// Moves units that don't depend on each other next to each other, where that takes fewer waits and
// not more than `limit` bytes at once. Answers whether it did.
bool vk_order_group(struct vk_order *order, size_t limit);

// Whether the node is launched, alone or with its unit.
static inline bool vk_order_launches(const struct vk_order *order, int32_t node) {
    const struct ggml_tensor *tensor = order->graph->nodes[node];
    return !ggml_op_is_empty(tensor->op) && (tensor->flags & GGML_TENSOR_FLAG_COMPUTE);
}

#endif
