// SPDX-License-Identifier: MIT
// Plans are those of plugins/gpu with its kernels, fused where one kernel computes several nodes.
#include "queue/plan.h"

#include "gpu/base/util.h"

static bool add(struct gpu_plan *plan, const struct ggml_tensor *node) {
    return simt_step_add(plan, node, 0);
}

#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = simt_step_fuse,
static const struct gpu_planner planner = {
    .name = "Metal",
    .launch_bytes = sizeof(struct simt_step),
    .add = add,
    .fuse =
        {
#include "gpu/graph/fuse_list.inl"
        },
};

// The names of fusions in GGML_METAL_DISABLE_FUSION are left out, as in the other plugins.
void metal_plan_init(struct gpu_plan *plan) {
    gpu_plan_init(plan, &planner, gpu_fusions_named(gpu_config("GGML_METAL_DISABLE_FUSION")));
}
