// SPDX-License-Identifier: MIT
// Plans are those of plugins/gpu with its kernels, fused where one kernel computes several nodes,
// and with the plugin's own for products.
#include "queue/plan.h"

#include "gpu/base/util.h"

static struct metal_launch *newest(struct gpu_plan *plan) {
    return &((struct metal_launch *)plan->launches)[plan->n_launches - 1];
}

static bool add(struct gpu_plan *plan, const struct ggml_tensor *node, bool has_matrices) {
    if (!simt_step_add(plan, node, 0)) return false;
    struct metal_launch *l = newest(plan);
    l->variant.kernel = (int)l->step.work.kernel;
    if (l->step.work.grid[0] > 0) metal_choose_product(l, node, has_matrices);
    return true;
}

// One function per set of features, as planners have no state of their own.
static bool add_plain(struct gpu_plan *plan, const struct ggml_tensor *node) {
    return add(plan, node, false);
}

static bool add_with_matrices(struct gpu_plan *plan, const struct ggml_tensor *node) {
    return add(plan, node, true);
}

static bool fuse(struct gpu_plan *plan, const struct gpu_fused *fused) {
    if (!simt_step_fuse(plan, fused)) return false;
    newest(plan)->variant.kernel = (int)newest(plan)->step.work.kernel;
    return true;
}

#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = fuse,
static const struct gpu_planner plain_planner = {
    .name = "Metal",
    .launch_bytes = sizeof(struct metal_launch),
    .add = add_plain,
    .fuse =
        {
#include "gpu/graph/fuse_list.inl"
        },
};
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = fuse,
static const struct gpu_planner matrix_planner = {
    .name = "Metal",
    .launch_bytes = sizeof(struct metal_launch),
    .add = add_with_matrices,
    .fuse =
        {
#include "gpu/graph/fuse_list.inl"
        },
};

// The names of fusions in GGML_METAL_DISABLE_FUSION are left out, as in the other plugins.
void metal_plan_init(struct gpu_plan *plan, bool has_matrices) {
    gpu_plan_init(plan, has_matrices ? &matrix_planner : &plain_planner,
                  gpu_fusions_named(gpu_config("GGML_METAL_DISABLE_FUSION")));
}
