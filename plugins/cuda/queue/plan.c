// SPDX-License-Identifier: MIT
// What CUDA adds to plans: launches of the shared kernels, with the memory that they use.
#include "queue/plan.h"

#include "gpu/base/util.h"

// Adds a tensor to those of a launch, once, and whether the launch writes it. At most
// GPU_MAX_TOUCHES: a kernel has no more operands.
static void use(struct cuda_launch *l, const struct ggml_tensor *tensor, bool writes) {
    int k = 0;
    while (k < l->n_tensors && l->tensors[k] != tensor)
        ++k;
    GGML_ASSERT(k < GPU_MAX_TOUCHES);
    l->tensors[k] = tensor;
    l->writes |= (uint32_t)writes << k;
    if (k == l->n_tensors) l->n_tensors++;
}

// Whether the operation also writes to a source: the optimiser's to its momenta.
static bool writes_source(const struct ggml_tensor *node, int s) {
    return node->op == GGML_OP_OPT_STEP_ADAMW && (s == 0 || s == 2 || s == 3);
}

// Prepares the kernel of a node and notes what it touches: the result is written, sources are read.
static bool add(struct gpu_plan *plan, const struct ggml_tensor *node, unsigned features) {
    struct cuda_launch *l = gpu_plan_append(plan);
    if (!l || !simt_kernel_prepare_for(&l->work, node, features)) return false;
    use(l, node, true);
    for (int s = 0; s < GGML_MAX_SRC; ++s) {
        if (node->src[s]) use(l, node->src[s], writes_source(node, s));
    }
    return true;
}

// One function per set of features, as planners have no state of their own.
static bool add_plain(struct gpu_plan *plan, const struct ggml_tensor *node) {
    return add(plan, node, 0);
}

static bool add_with_tensor_cores(struct gpu_plan *plan, const struct ggml_tensor *node) {
    return add(plan, node, SIMT_TENSOR_CORES);
}

// Whether the tensor is the result of one of the fused nodes. Linear: fusions have a few nodes.
static bool is_inside(const struct gpu_fused *fused, const struct ggml_tensor *tensor) {
    for (int k = 0; k < fused->n; ++k) {
        if (fused->nodes[k] == tensor) return true;
    }
    return false;
}

// What lies between the nodes is never written, so that it counts for no order.
static bool planner_fuse(struct gpu_plan *plan, const struct gpu_fused *fused) {
    struct cuda_launch *l = gpu_plan_append(plan);
    if (!l || !simt_fuse_prepare(&l->work, fused)) return false;
    use(l, fused->dst, true);
    for (int k = 0; k < fused->n; ++k) {
        for (int s = 0; s < GGML_MAX_SRC; ++s) {
            const struct ggml_tensor *source = fused->nodes[k]->src[s];
            if (source && !is_inside(fused, source)) use(l, source, false);
        }
    }
    return true;
}

#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = planner_fuse,
static const struct gpu_planner plain_planner = {
    .name = "CUDA",
    .launch_bytes = sizeof(struct cuda_launch),
    .add = add_plain,
    .fuse =
        {
#include "gpu/graph/fuse_list.inl"
        },
};
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = planner_fuse,
static const struct gpu_planner tensor_planner = {
    .name = "CUDA",
    .launch_bytes = sizeof(struct cuda_launch),
    .add = add_with_tensor_cores,
    .fuse =
        {
#include "gpu/graph/fuse_list.inl"
        },
};

// The names of fusions in GGML_CUDA_DISABLE_FUSION are left out, as in the Vulkan plugin.
void cuda_plan_init(struct gpu_plan *plan, unsigned features) {
    const struct gpu_planner *planner =
        features & SIMT_TENSOR_CORES ? &tensor_planner : &plain_planner;
    gpu_plan_init(plan, planner, gpu_fusions_named(gpu_config("GGML_CUDA_DISABLE_FUSION")));
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
