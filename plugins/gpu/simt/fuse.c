// SPDX-License-Identifier: MIT
// Launches of several nodes at once: kernels/fused.cpp, or a kernel that does more than one
// operation anyway.
#include "gpu/graph/fuse.h"

#include "simt/rows.h"

// The first node's own launch with another kernel and more operands.
static bool fuse_norm(struct simt_work *l, const struct gpu_fused *fused) {
    if (!simt_kernel_prepare(l, fused->nodes[0])) return false;
    l->kernel = SIMT_KERNEL_norm_scaled;
    simt_operand(&l->args.operands[0], fused->dst);
    simt_operand(&l->args.operands[2], fused->operands[0]);
    simt_operand(&l->args.operands[3], fused->n == 3 ? fused->operands[1] : NULL);
    return true;
}

static bool fuse_add_chain(struct simt_work *l, const struct gpu_fused *fused) {
    const struct ggml_tensor *operands[GPU_MAX_OPERANDS] = {fused->dst};
    unsigned terms = 0;
    for (int k = 0; k < fused->n_operands; ++k) {
        operands[k + 1] = fused->operands[k];
        terms |= 2u << k;
    }
    simt_prepare_combine(
        l, operands,
        &(struct simt_combine){.end = ggml_nelements(fused->dst), .terms = terms, .results = 1});
    return true;
}

// As the soft_max with scale and mask that the three nodes could have been.
static bool fuse_mask(struct simt_work *l, const struct gpu_fused *fused) {
    const struct ggml_tensor *scale = fused->nodes[0];
    struct ggml_tensor whole = *fused->dst;
    whole.src[0] = scale->src[0];
    whole.src[1] = (struct ggml_tensor *)(uintptr_t)fused->operands[0];
    memcpy(whole.op_params, scale->op_params, sizeof(float));
    return simt_kernel_prepare(l, &whole);
}

bool simt_fuse_prepare(struct simt_work *out_launch, const struct gpu_fused *fused) {
    switch (fused->fusion) {
    case GPU_FUSION_norm: return fuse_norm(out_launch, fused);
    case GPU_FUSION_add_chain: return fuse_add_chain(out_launch, fused);
    case GPU_FUSION_mask: return fuse_mask(out_launch, fused);
    default: return false;
    }
}

void simt_prepare_combine(struct simt_work *out_launch, const struct ggml_tensor *const *operands,
                          const struct simt_combine *combine) {
    *out_launch = (struct simt_work){.kernel = SIMT_KERNEL_combine, .grid = {0, 1, 1}};
    for (int k = 0; k < GPU_MAX_OPERANDS; ++k)
        simt_operand(&out_launch->args.operands[k], operands[k]);
    const gpu_number numbers[] = {combine->begin, combine->end, combine->terms, combine->function,
                                  combine->results};
    memcpy(out_launch->args.numbers, numbers, sizeof(numbers));
    simt_launch_threads(out_launch, combine->end - combine->begin);
}
