// SPDX-License-Identifier: MIT
// The dispatches that compute a graph, in order, before anything is recorded.
#ifndef VK_PLAN_H
#define VK_PLAN_H

#include "gpu/graph/plan.h"
#include "plan/kernel.h"

struct vk_plan {
    struct gpu_plan base; // first, as the planner's functions are given it
    const struct vk_features *features;
};

// An empty plan; vk_plan_free() ends it. [stream]
void vk_plan_init(struct vk_plan *plan, const struct vk_features *features);
void vk_plan_free(struct vk_plan *plan);
// Appends the dispatches that compute the node. False when no kernel does, or memory ran out.
bool vk_plan_add(struct vk_plan *plan, const struct ggml_tensor *node);
// Appends the dispatches of the whole graph, leaving out what moves no data. [stream]
enum ggml_status vk_plan_graph(struct vk_plan *plan, const struct ggml_graph *graph);
// Which fusions GGML_VULKAN_DISABLE_FUSION switches off, one bit each. [any-thread]
uint32_t vk_fusions_disabled(void);

static inline int vk_plan_count(const struct vk_plan *plan) {
    return plan->base.n_launches;
}

// The dispatch of that number.
static inline struct vk_dispatch *vk_plan_at(const struct vk_plan *plan, int i) {
    return &((struct vk_dispatch *)plan->base.launches)[i];
}

#endif
