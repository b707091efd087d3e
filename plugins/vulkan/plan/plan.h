// SPDX-License-Identifier: MIT
// The dispatches that compute a graph, in order, before anything is recorded.
#ifndef GVK_PLAN_H
#define GVK_PLAN_H

#include "gpu/graph/plan.h"
#include "plan/kernel.h"

struct gvk_plan {
    struct gpu_plan base; // first, as the planner's functions are given it
    const struct gvk_features *features;
};

// An empty plan; gvk_plan_free() ends it. [stream]
void gvk_plan_init(struct gvk_plan *plan, const struct gvk_features *features);
void gvk_plan_free(struct gvk_plan *plan);
// Appends the dispatches that compute the node. False when no kernel does, or memory ran out.
bool gvk_plan_add(struct gvk_plan *plan, const struct ggml_tensor *node);
// Appends the dispatches of the whole graph, leaving out what moves no data. [stream]
enum ggml_status gvk_plan_graph(struct gvk_plan *plan, const struct ggml_graph *graph);
// Which fusions GGML_VULKAN_DISABLE_FUSION switches off, one bit each. [any-thread]
uint32_t gvk_fusions_disabled(void);

static inline int gvk_plan_count(const struct gvk_plan *plan) {
    return plan->base.n_launches;
}

// The dispatch of that number.
static inline struct gvk_dispatch *gvk_plan_at(const struct gvk_plan *plan, int i) {
    return &((struct gvk_dispatch *)plan->base.launches)[i];
}

#endif
