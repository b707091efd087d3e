// SPDX-License-Identifier: MIT
// The launches that compute a graph on a Metal device.
#ifndef METAL_QUEUE_PLAN_H
#define METAL_QUEUE_PLAN_H

#include "device/kernels.h"
#include "simt/step.h"

// A launch of a shared kernel, or of one of the plugin's in its place.
struct metal_launch {
    struct simt_step step;
    struct metal_variant variant;
};

// What a stream plans by.
struct metal_planner {
    struct gpu_planner base;
    bool has_matrices; // of SIMD groups
    bool has_scratch;  // false: attention is not split into parts, which scratch memory joins
};

// An empty plan, and its planner, which lives as long; gpu_plan_free() ends it. [stream]
void metal_plan_init(struct gpu_plan *plan, struct metal_planner *planner, bool has_matrices);
// Appends the launches of a node, or of fused nodes; entries of planners. [stream]
bool metal_plan_add(struct gpu_plan *plan, const struct ggml_tensor *node);
bool metal_plan_fuse(struct gpu_plan *plan, const struct gpu_fused *fused);
// The newest launch of a plan that has some. [stream]
static inline struct metal_launch *metal_plan_newest(struct gpu_plan *plan) {
    return &((struct metal_launch *)plan->launches)[plan->n_launches - 1];
}

static inline const struct metal_launch *metal_plan_at(const struct gpu_plan *plan, int i) {
    return &((const struct metal_launch *)plan->launches)[i];
}

#endif
