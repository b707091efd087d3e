// SPDX-License-Identifier: MIT
// Launches of the shared kernels as the steps of a plan, with the memory that they use.
#ifndef GPU_SIMT_STEP_H
#define GPU_SIMT_STEP_H

#include "gpu/graph/overlap.h"
#include "gpu/graph/plan.h"
#include "simt/kernels.h"

// A launch, and the tensors whose memory it uses: the first one is written. The first member of a
// plugin's launch, or all of it.
struct simt_step {
    struct simt_work work;
    int n_tensors;
    uint32_t writes; // bits of the tensors that are written
    const struct ggml_tensor *tensors[GPU_MAX_TOUCHES];
};

// Appends the launch of a node for a device with the plan's features, of enum simt_feature. False:
// no kernel computes it, or the plan is out of memory. For struct gpu_planner. [stream]
bool simt_step_add(struct gpu_plan *plan, const struct ggml_tensor *node);
// Appends the launches of fused nodes likewise; false: no kernel does. For every row of struct
// gpu_planner's fuse. [stream]
bool simt_step_fuse(struct gpu_plan *plan, const struct gpu_fused *fused);
// Makes the launch's tensors those of fused nodes. [any-thread]
void simt_step_use_fused(struct simt_step *step, const struct gpu_fused *fused);

#endif
