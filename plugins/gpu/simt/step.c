// SPDX-License-Identifier: MIT
// What a launch reads and writes follows from its nodes: results are written, sources are read.
#include "simt/step.h"

#include "gpu/base/nodes.h"

// Adds a tensor to those of a launch, once, and whether the launch writes it. At most
// GPU_MAX_TOUCHES: a kernel has no more operands.
static void use(struct simt_step *l, const struct ggml_tensor *tensor, bool writes) {
    int k = 0;
    while (k < l->n_tensors && l->tensors[k] != tensor)
        ++k;
    GGML_ASSERT(k < GPU_MAX_TOUCHES);
    l->tensors[k] = tensor;
    l->writes |= (uint32_t)writes << k;
    if (k == l->n_tensors) l->n_tensors++;
}

static void use_tensors(struct simt_step *l, const struct ggml_tensor *node) {
    use(l, node, true);
    for (int s = 0; s < GGML_MAX_SRC; ++s) {
        if (node->src[s]) use(l, node->src[s], gpu_writes_source(node, s));
    }
}

// Prepares the kernel of a node, and another one where its parts have to be joined. Scratch memory
// is that of the plan: launches that use it have to run in order.
bool simt_step_add(struct gpu_plan *plan, const struct ggml_tensor *node) {
    struct simt_step *l = gpu_plan_append(plan);
    if (!l || !simt_kernel_prepare_for(&l->work, node, plan->features)) return false;
    use_tensors(l, node);
    if (l->work.scratch == 0) return true;
    const struct simt_work first = l->work;
    plan->scratch_used = 0;
    gpu_plan_scratch(plan, first.scratch);
    l = gpu_plan_append(plan);
    if (!l) return false;
    use_tensors(l, node);
    return simt_kernel_finish(&l->work, &first);
}

// Whether the tensor is the result of one of the fused nodes. Linear: fusions have a few nodes.
static bool is_inside(const struct gpu_fused *fused, const struct ggml_tensor *tensor) {
    for (int k = 0; k < fused->n; ++k) {
        if (fused->nodes[k] == tensor) return true;
    }
    return false;
}

// What lies between the nodes is never written, so that it counts for no order.
void simt_step_use_fused(struct simt_step *l, const struct gpu_fused *fused) {
    l->n_tensors = 0;
    l->writes = 0;
    use(l, fused->dst, true);
    for (int k = 0; k < fused->n; ++k) {
        for (int s = 0; s < GGML_MAX_SRC; ++s) {
            const struct ggml_tensor *source = fused->nodes[k]->src[s];
            if (source && !is_inside(fused, source)) use(l, source, false);
        }
    }
}

// What was made in the place of an operand goes to where it belongs.
static bool add_copy(struct gpu_plan *plan, const struct ggml_tensor *from,
                     const struct ggml_tensor *to) {
    struct simt_step *l = gpu_plan_append(plan);
    struct ggml_tensor copy = *to;
    memset(copy.src, 0, sizeof(copy.src));
    copy.op = GGML_OP_CPY;
    copy.src[0] = (struct ggml_tensor *)(uintptr_t)from;
    if (!l || !simt_kernel_prepare(&l->work, &copy)) return false;
    use(l, to, true);
    use(l, from, false);
    return true;
}

bool simt_step_fuse(struct gpu_plan *plan, const struct gpu_fused *fused) {
    struct simt_step *l = gpu_plan_append(plan);
    if (!l || !simt_fuse_prepare(&l->work, fused, plan->features)) return false;
    simt_step_use_fused(l, fused);
    if (!fused->indirect) return true;
    l->tensors[0] = fused->operands[0]; // it is written instead of the result
    return add_copy(plan, fused->operands[0], fused->dst);
}
