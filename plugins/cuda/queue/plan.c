// SPDX-License-Identifier: MIT
// What CUDA adds to plans: launches of the shared kernels, with the memory that they use.
#include "queue/plan.h"

#include "gpu/base/util.h"

static const struct gpu_planner planner = {
    .name = "CUDA",
    .launch_bytes = sizeof(struct simt_step),
    .add = simt_step_add,
    .fuse =
        {
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = simt_step_fuse,
#include "gpu/graph/fuse_list.inl"
        },
};

// The names of fusions in GGML_CUDA_DISABLE_FUSION are left out, as in the Vulkan plugin.
void cuda_plan_init(struct gpu_plan *plan, unsigned features) {
    gpu_plan_init(plan, &planner, gpu_fusions_named(gpu_config("GGML_CUDA_DISABLE_FUSION")));
    plan->features = features;
}

bool cuda_plan_use_less(struct gpu_plan *plan) {
    enum { MUCH = 1 << 20 };
    if (!(plan->features & SIMT_WARPGROUPS) || plan->scratch_bytes <= MUCH) return false;
    plan->features &= ~(unsigned)SIMT_WARPGROUPS;
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
