// SPDX-License-Identifier: MIT
// What CUDA adds to plans: launches of the shared kernels, with the memory that they use.
#include "queue/plan.h"

#include "gpu/base/util.h"

// Functions and a planner per set of features, as planners have no state of their own.
#define PLANNER(name_, features)                                                                   \
    static bool add_##name_(struct gpu_plan *plan, const struct ggml_tensor *node) {               \
        return simt_step_add(plan, node, features);                                                \
    }                                                                                              \
    static bool fuse_##name_(struct gpu_plan *plan, const struct gpu_fused *fused) {               \
        return simt_step_fuse(plan, fused, features);                                              \
    }

PLANNER(plain, 0)
PLANNER(f16, SIMT_TENSOR_F16)
PLANNER(tensor, SIMT_TENSOR_CORES)
PLANNER(warpgroup, SIMT_TENSOR_CORES | SIMT_WARPGROUPS)

static const struct gpu_planner plain_planner = {
    .name = "CUDA",
    .launch_bytes = sizeof(struct simt_step),
    .add = add_plain,
    .fuse =
        {
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = fuse_plain,
#include "gpu/graph/fuse_list.inl"
        },
};
static const struct gpu_planner f16_planner = {
    .name = "CUDA",
    .launch_bytes = sizeof(struct simt_step),
    .add = add_f16,
    .fuse =
        {
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = fuse_f16,
#include "gpu/graph/fuse_list.inl"
        },
};
static const struct gpu_planner tensor_planner = {
    .name = "CUDA",
    .launch_bytes = sizeof(struct simt_step),
    .add = add_tensor,
    .fuse =
        {
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = fuse_tensor,
#include "gpu/graph/fuse_list.inl"
        },
};
static const struct gpu_planner warpgroup_planner = {
    .name = "CUDA",
    .launch_bytes = sizeof(struct simt_step),
    .add = add_warpgroup,
    .fuse =
        {
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = fuse_warpgroup,
#include "gpu/graph/fuse_list.inl"
        },
};

// The names of fusions in GGML_CUDA_DISABLE_FUSION are left out, as in the Vulkan plugin.
void cuda_plan_init(struct gpu_plan *plan, unsigned features) {
    const struct gpu_planner *planner = features & SIMT_WARPGROUPS    ? &warpgroup_planner
                                        : features & SIMT_TENSOR_BF16 ? &tensor_planner
                                        : features & SIMT_TENSOR_F16  ? &f16_planner
                                                                      : &plain_planner;
    gpu_plan_init(plan, planner, gpu_fusions_named(gpu_config("GGML_CUDA_DISABLE_FUSION")));
}

bool cuda_plan_use_less(struct gpu_plan *plan) {
    enum { MUCH = 1 << 20 };
    if (plan->planner != &warpgroup_planner || plan->scratch_bytes <= MUCH) return false;
    plan->planner = &tensor_planner;
    return true;
}

// FNV-1a over the kernels in order. Two plans of one shape have the same nodes in a graph of the
// driver's, so that one can be changed into the other in place; whether their edges agree is
// compared there.
uint64_t cuda_plan_shape(const struct gpu_plan *plan) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int i = 0; i < plan->n_launches; ++i)
        hash = (hash ^ (uint64_t)cuda_plan_at(plan, i)->work.kernel) * UINT64_C(1099511628211);
    return hash;
}
