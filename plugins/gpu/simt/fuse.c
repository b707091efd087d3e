// SPDX-License-Identifier: MIT
// Launches of several nodes at once: kernels/fused.cpp, or a kernel that does more than one
// operation anyway.
#include "gpu/graph/fuse.h"

#include "kernels/launch/products.h"
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

// A sum of up to seven tensors of one shape; a bit for each operand that is a term.
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

// The result of rope in the rows that set_rows would copy it to, whose numbers are operand 4.
static bool fuse_rope_rows(struct simt_work *l, const struct gpu_fused *fused) {
    const struct ggml_tensor *rope = fused->nodes[0], *rows = fused->dst;
    struct gpu_operand *y = &l->args.operands[0];
    if (!simt_kernel_prepare(l, rope)) return false;
    simt_operand(y, rows);
    for (int d = 0; d < GGML_MAX_DIMS; ++d)
        y->ne[d] = rope->ne[d];
    y->nb[1] = y->nb[0] * rope->ne[0];
    y->nb[2] = (long long)rows->nb[1];
    simt_operand(&l->args.operands[4], fused->operands[0]);
    l->args.numbers[2] = rows->ne[1];
    return true;
}

// --- products on tensor cores

// The product's own launch, if it is one by mma.sync: others have no room for a second result.
static bool prepare_product(struct simt_work *l, const struct ggml_tensor *product,
                            unsigned features, bool *out_is_few) {
    if (!simt_kernel_prepare_for(l, product, features) || l->scratch > 0) return false;
    *out_is_few = l->kernel >= SIMT_KERNEL_few_F16 && l->kernel < SIMT_KERNEL_tile_F16;
    return *out_is_few || l->kernel >= SIMT_KERNEL_tile_F16;
}

// One column for all, or one for each.
static bool fuse_bias(struct simt_work *l, const struct gpu_fused *fused, unsigned features) {
    const struct ggml_tensor *bias = fused->operands[0];
    bool is_few;
    if ((bias->ne[1] != 1 && bias->ne[1] != fused->dst->ne[1]) ||
        !prepare_product(l, fused->nodes[0], features, &is_few))
        return false;
    simt_operand(&l->args.operands[0], fused->dst);
    simt_operand(&l->args.operands[4], bias);
    return true;
}

static bool lie_alike(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->type == b->type && ggml_are_same_shape(a, b) &&
           memcmp(a->nb, b->nb, sizeof(a->nb)) == 0;
}

// Both have to be products of a few columns, by the same kernel.
static bool fuse_glu(struct simt_work *l, const struct gpu_fused *fused, unsigned features) {
    const struct ggml_tensor *x = fused->operands[0], *gate = fused->operands[1];
    struct simt_work other;
    bool is_few;
    if (!lie_alike(x->src[0], gate->src[0]) || !ggml_are_same_shape(x, fused->dst) ||
        !prepare_product(&other, gate, features, &is_few) || !is_few ||
        !prepare_product(l, x, features, &is_few) || l->kernel != other.kernel)
        return false;
    simt_operand(&l->args.operands[0], fused->indirect ? x : fused->dst);
    simt_operand(&l->args.operands[4], gate->src[0]);
    memcpy(l->args.params, fused->dst->op_params, sizeof(l->args.params));
    l->args.numbers[FEW_GATED] = 1;
    return true;
}

bool simt_fuse_prepare(struct simt_work *out_launch, const struct gpu_fused *fused,
                       unsigned features) {
    const bool has_tensor_cores = (features & SIMT_TENSOR_F16) != 0;
    switch (fused->fusion) {
    case GPU_FUSION_norm: return fuse_norm(out_launch, fused);
    case GPU_FUSION_add_chain: return fuse_add_chain(out_launch, fused);
    case GPU_FUSION_mask: return fuse_mask(out_launch, fused);
    case GPU_FUSION_rope_rows: return fuse_rope_rows(out_launch, fused);
    case GPU_FUSION_bias: return has_tensor_cores && fuse_bias(out_launch, fused, features);
    case GPU_FUSION_glu: return has_tensor_cores && fuse_glu(out_launch, fused, features);
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
