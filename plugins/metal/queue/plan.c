// SPDX-License-Identifier: MIT
// Plans are those of plugins/gpu with its kernels, and with the plugin's own where these take a
// node.
#include "queue/plan.h"

#include "gpu/base/util.h"
#include "queue/choose.h"

void metal_specialise(struct metal_launch *l, const struct metal_variant *variant) {
    l->variant = *variant;
    for (int i = 0; i < METAL_SPECIAL; ++i)
        l->step.work.args.numbers[METAL_FIRST_SPECIAL + i] = variant->values[i];
}

// Scratch memory is that of the plan, from its beginning on: launches that use it run in order.
bool metal_plan_add(struct gpu_plan *plan, const struct ggml_tensor *node) {
    const struct metal_planner *planner = (const struct metal_planner *)plan->planner;
    if (!simt_step_add(plan, node)) return false;
    struct metal_launch *l = metal_plan_newest(plan);
    l->variant.kernel = (int)l->step.work.kernel;
    if (l->step.work.grid[0] == 0) return true;
    metal_choose_product(l, node, planner);
    metal_choose_attention(l, node, planner);
    if (l->step.work.scratch == 0) return true;
    const struct metal_launch first = *l;
    plan->scratch_used = 0;
    gpu_plan_scratch(plan, first.step.work.scratch);
    l = gpu_plan_append(plan);
    return l && metal_merge_attention(l, &first);
}

#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = metal_plan_fuse,
static const struct gpu_planner planner_base = {
    .name = "Metal",
    .launch_bytes = sizeof(struct metal_launch),
    .add = metal_plan_add,
    .fuse =
        {
#include "gpu/graph/fuse_list.inl"
        },
};

// The names of fusions in GGML_METAL_DISABLE_FUSION are left out, as in the other plugins.
void metal_plan_init(struct gpu_plan *plan, struct metal_planner *planner, bool has_matrices) {
    *planner = (struct metal_planner){planner_base, has_matrices, true};
    gpu_plan_init(plan, &planner->base, gpu_fusions_named(gpu_config("GGML_METAL_DISABLE_FUSION")));
}
