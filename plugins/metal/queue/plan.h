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

// An empty plan for a device with or without matrices of SIMD groups; gpu_plan_free() ends it.
// [stream]
void metal_plan_init(struct gpu_plan *plan, bool has_matrices);
// Replaces the plain kernel of a product by one that is faster, if one takes the node. [any-thread]
void metal_choose_product(struct metal_launch *launch, const struct ggml_tensor *node,
                          bool has_matrices);

static inline const struct metal_launch *metal_plan_at(const struct gpu_plan *plan, int i) {
    return &((const struct metal_launch *)plan->launches)[i];
}

#endif
