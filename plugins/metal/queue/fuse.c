// SPDX-License-Identifier: MIT
// Nodes that one launch computes: those that the shared kernels can, and what belongs to a product
// or comes after rope.
#include "gpu/graph/fuse.h"

#include "queue/choose.h"
#include "simt/rows.h"

// The launch of the first node alone, which has to be one, as that of all nodes.
static struct metal_launch *begin(struct gpu_plan *plan, const struct gpu_fused *fused,
                                  const struct ggml_tensor *first) {
    const int before = plan->n_launches;
    if (!metal_plan_add(plan, first) || plan->n_launches != before + 1) return NULL;
    struct metal_launch *l = metal_plan_newest(plan);
    simt_step_use_fused(&l->step, fused);
    return l;
}

static bool fuse_bias(struct gpu_plan *plan, const struct gpu_fused *fused) {
    struct metal_launch *l = begin(plan, fused, fused->nodes[0]);
    return l && metal_add_bias(l, fused->operands[0], fused->dst);
}

// A copy of the product's memory, where the result was made, to where it belongs.
static bool copy_result(struct gpu_plan *plan, const struct ggml_tensor *x,
                        const struct ggml_tensor *glu) {
    struct ggml_tensor copy = *glu;
    memset(copy.src, 0, sizeof(copy.src));
    copy.op = GGML_OP_CONT;
    copy.src[0] = (struct ggml_tensor *)(uintptr_t)x;
    if (!metal_plan_add(plan, &copy)) return false;
    struct simt_step *step = &metal_plan_newest(plan)->step;
    for (int k = 0; k < step->n_tensors; ++k) {
        if (step->tensors[k] == &copy) step->tensors[k] = glu;
    }
    return true;
}

static bool fuse_glu(struct gpu_plan *plan, const struct gpu_fused *fused) {
    const struct ggml_tensor *x = fused->operands[0], *gate = fused->operands[1];
    const struct ggml_tensor *to = fused->indirect ? x : fused->dst;
    // If indirect, the launch writes the product's memory, which then counts for the order of
    // launches.
    struct gpu_fused made = *fused;
    made.dst = to;
    struct metal_launch *l = begin(plan, &made, x);
    if (!l || !metal_add_gate(l, x, gate, fused->dst)) return false;
    simt_operand(&l->step.work.args.operands[0], to);
    return !fused->indirect || copy_result(plan, x, fused->dst);
}

bool metal_plan_fuse(struct gpu_plan *plan, const struct gpu_fused *fused) {
    switch (fused->fusion) {
    case GPU_FUSION_bias: return fuse_bias(plan, fused);
    case GPU_FUSION_glu: return fuse_glu(plan, fused);
    default: break;
    }
    if (!simt_step_fuse(plan, fused)) return false;
    metal_plan_newest(plan)->variant.kernel = (int)metal_plan_newest(plan)->step.work.kernel;
    return true;
}
