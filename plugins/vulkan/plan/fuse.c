// SPDX-License-Identifier: MIT
// A fused launch is mostly the first node's own dispatch with another shader, one that does the
// same and goes on: operands and specialisation constants are added to it. So what a kernel can do
// is decided in one place, its encoder.
#include "plan/fuse.h"

#include <string.h>

#include "gpu/base/shape.h"
#include "ops/mul_mat/mul_mat.h"
#include "plan/plan.h"

static struct gvk_plan *plan_of(struct gpu_plan *plan) {
    return (struct gvk_plan *)(void *)plan;
}

static void set_operand(struct gvk_dispatch *d, int i, const struct ggml_tensor *tensor) {
    d->operands[i] = (struct gvk_operand){.tensor = tensor};
    if (i >= d->n_operands) d->n_operands = i + 1;
}

// Encodes `node` by its own kernel; returns the one dispatch that this is, or NULL.
static struct gvk_dispatch *encode_alone(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const int before = gvk_plan_count(plan);
    if (!gvk_plan_add(plan, node)) return NULL;
    return gvk_plan_count(plan) == before + 1 ? gvk_plan_at(plan, before) : NULL;
}

// In all dispatches from number `first` on.
static void replace_operand(struct gvk_plan *plan, int first, const struct ggml_tensor *from,
                            const struct ggml_tensor *to) {
    for (int i = first; i < gvk_plan_count(plan); ++i) {
        struct gvk_dispatch *d = gvk_plan_at(plan, i);
        for (int k = 0; k < d->n_operands; ++k) {
            if (d->operands[k].tensor == from) d->operands[k].tensor = to;
        }
    }
}

// A norm, its scale, and an added term: norm.comp with the rest of its operands.
bool gvk_fuse_norm(struct gpu_plan *plan, const struct gpu_fused *fused) {
    const struct ggml_tensor *dst = fused->dst, *scale = fused->operands[0];
    const struct ggml_tensor *term = fused->n == 3 ? fused->operands[1] : NULL;
    struct gvk_dispatch *d = encode_alone(plan_of(plan), fused->nodes[0]);
    if (!d) return false;
    enum { SPEC_VECTORS = 4 }; // of norm.comp
    d->shader = GVK_SHADER_norm_scaled;
    d->specs[SPEC_VECTORS] &= gpu_rows_aligned(dst, 16) && gpu_rows_aligned(scale, 16) &&
                              (!term || gpu_rows_aligned(term, 16));
    gvk_dispatch_spec(d, term != NULL);
    set_operand(d, 0, dst);
    set_operand(d, 2, scale);
    set_operand(d, 3, term ? term : scale);
    return true;
}

// The result in the place of the product x, then a copy to where it belongs.
static bool fuse_glu_indirect(struct gvk_plan *plan, const struct ggml_tensor *glu,
                              const struct ggml_tensor *x, const struct ggml_tensor *gate) {
    const int before = gvk_plan_count(plan);
    struct ggml_tensor copy = *glu;
    memset(copy.src, 0, sizeof(copy.src));
    copy.op = GGML_OP_CONT;
    copy.src[0] = glu->src[0];
    if (!gvk_encode_mul_mat_glu(plan, x, gate, glu)) return false;
    replace_operand(plan, before, glu, x);
    if (!gvk_plan_add(plan, &copy)) return false;
    replace_operand(plan, before, &copy, glu);
    return true;
}

bool gvk_fuse_glu(struct gpu_plan *plan, const struct gpu_fused *fused) {
    const struct ggml_tensor *x = fused->operands[0], *gate = fused->operands[1];
    return fused->indirect ? fuse_glu_indirect(plan_of(plan), fused->dst, x, gate)
                           : gvk_encode_mul_mat_glu(plan_of(plan), x, gate, fused->dst);
}

bool gvk_fuse_bias(struct gpu_plan *plan, const struct gpu_fused *fused) {
    return gvk_encode_mul_mat_bias(plan_of(plan), fused->nodes[0], fused->operands[0], fused->dst);
}

// Several additions of the same shape in one launch. Bindings of terms that aren't there repeat
// the first one, as each binding must be valid.
bool gvk_fuse_add_chain(struct gpu_plan *base, const struct gpu_fused *fused) {
    enum { GROUP = 64 };
    struct gvk_plan *plan = plan_of(base);
    const struct ggml_tensor *dst = fused->dst;
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_add_chain, dst, 0, GROUP);
    if (!d) return false;
    gvk_dispatch_spec(d, (uint32_t)fused->n_operands);
    for (int k = 0; k < GPU_MAX_TERMS; ++k) // as many as shaders/add_chain.comp has bindings
        set_operand(d, 1 + k, fused->operands[k < fused->n_operands ? k : 0]);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(dst), (uint64_t)GROUP * 4));
    return true;
}

// rope that writes straight to the rows of a cache, which set_rows would have copied to.
bool gvk_fuse_rope_rows(struct gpu_plan *plan, const struct gpu_fused *fused) {
    const struct ggml_tensor *rope = fused->nodes[0], *ids = fused->operands[0];
    struct gvk_dispatch *d = encode_alone(plan_of(plan), rope);
    if (!d) return false;
    d->shader = GVK_SHADER_rope_rows;
    gvk_dispatch_spec(d, fused->dst->type);
    gvk_dispatch_spec(d, ids->type == GGML_TYPE_I64);
    set_operand(d, 0, fused->dst);
    if (!rope->src[2]) set_operand(d, 3, ids);
    set_operand(d, 4, ids);
    return true;
}

// As the soft_max with scale and mask that the three nodes could have been.
bool gvk_fuse_mask(struct gpu_plan *base, const struct gpu_fused *fused) {
    struct gvk_plan *plan = plan_of(base);
    const struct ggml_tensor *scale = fused->nodes[0];
    struct ggml_tensor whole = *fused->dst;
    whole.src[0] = scale->src[0];
    whole.src[1] = (struct ggml_tensor *)(uintptr_t)fused->operands[0];
    memcpy(whole.op_params, scale->op_params, sizeof(float));
    const int before = gvk_plan_count(plan);
    if (!encode_alone(plan, &whole)) return false;
    replace_operand(plan, before, &whole, fused->dst);
    return true;
}
