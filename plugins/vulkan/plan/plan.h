// SPDX-License-Identifier: MIT
// The launches that compute a graph, in order, before anything is recorded.
#ifndef VK_PLAN_H
#define VK_PLAN_H

#include "plan/kernel.h"

struct vk_plan {
    const struct vk_features *features;
    struct vk_dispatch *dispatches;
    int n_dispatches;
    int max_dispatches;
    size_t scratch_used;  // by the node that is being encoded
    size_t scratch_bytes; // most that a node needs
    bool out_of_memory;
    uint32_t fusions_disabled; // bits as vk_fusions_disabled() answers them
};

// An empty plan; vk_plan_free() ends it. [stream]
void vk_plan_init(struct vk_plan *plan, const struct vk_features *features);
// Forgets the dispatches and keeps the memory.
void vk_plan_clear(struct vk_plan *plan);
void vk_plan_free(struct vk_plan *plan);
// Appends the dispatches that compute the node. False when no kernel does, or memory ran out.
bool vk_plan_add(struct vk_plan *plan, const struct ggml_tensor *node);
// Appends the dispatches of the whole graph, leaving out what moves no data. [stream]
enum ggml_status vk_plan_graph(struct vk_plan *plan, const struct ggml_graph *graph);

#endif
