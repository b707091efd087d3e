// SPDX-License-Identifier: MIT
// Gradients, losses and optimiser steps.
#include "gpu/base/shape.h"
#include "plan/kernel.h"

enum { GROUP = 64, ROW_GROUP = 128 };

// Whether a tensor is F32 and of the node's shape.
static bool is_like(const struct ggml_tensor *t, const struct ggml_tensor *node) {
    return ggml_has_type(t, GGML_TYPE_F32) && ggml_are_same_shape(t, node);
}

// Whether both sources have the node's shape and type.
bool gvk_accepts_same_pair(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_are_same_shape(node, node->src[0]) && ggml_are_same_shape(node, node->src[1]) &&
           node->type == node->src[0]->type && node->type == node->src[1]->type;
}

// One invocation per element.
void gvk_encode_silu_back(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_silu_back, node, 2, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

// ALiBi has no gradient.
bool gvk_accepts_soft_max_back(const struct gvk_features *features,
                               const struct ggml_tensor *node) {
    return node->op_params[1] == 0 && gvk_accepts_same_pair(features, node);
}

// A group of invocations per row, which is reduced and then scaled.
void gvk_encode_rows_back(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_rows_back, node, 2, ROW_GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->op == GGML_OP_RMS_NORM_BACK);
    gvk_dispatch_groups(plan, d, gpu_nrows(node));
}

bool gvk_accepts_repeat_back(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_repeats(node, node->src[0]);
}

void gvk_encode_repeat_back(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_repeat_back, node, 1, GROUP);
    if (d) gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

bool gvk_accepts_get_rows_back(const struct gvk_features *features,
                               const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_get_rows_back(node) && ggml_rows_dense(node->src[0]);
}

// One invocation per element of the result.
void gvk_encode_get_rows_back(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_get_rows_back, node, 2, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

// --- loss ----------------------------------------------------------------------------------------

bool gvk_accepts_cross_entropy_loss(const struct gvk_features *features,
                                    const struct ggml_tensor *node) {
    (void)features;
    return gpu_nelements(node) == 1 && is_like(node->src[1], node->src[0]);
}

// The rows' losses go to scratch memory, then their mean to the result.
void gvk_encode_cross_entropy_loss(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint64_t n_rows = gpu_nrows(node->src[0]);
    const size_t bytes = (size_t)(n_rows ? n_rows : 1) * sizeof(float);
    const size_t losses = gvk_plan_scratch(plan, bytes);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_cross_entropy, node, 3, ROW_GROUP);
    if (!d) return;
    gvk_dispatch_scratch(d, 0, losses, bytes, true);
    gvk_dispatch_spec(d, 0);
    gvk_dispatch_groups(plan, d, n_rows);
    d = gvk_dispatch_new(plan, GVK_SHADER_mean_of, node, 0, ROW_GROUP);
    if (!d) return;
    gvk_dispatch_scratch(d, 1, losses, bytes, false);
    d->numbers[0] = (uint32_t)n_rows;
}

// The loss' gradient is one number.
bool gvk_accepts_cross_entropy_loss_back(const struct gvk_features *features,
                                         const struct ggml_tensor *node) {
    (void)features;
    return gpu_nelements(node->src[0]) == 1 && is_like(node->src[1], node) &&
           is_like(node->src[2], node);
}

// The shader of the loss, in its other direction.
void gvk_encode_cross_entropy_loss_back(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_cross_entropy, node, 3, ROW_GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, 1);
    gvk_dispatch_groups(plan, d, gpu_nrows(node));
}

// --- optimiser steps -----------------------------------------------------------------------------

bool gvk_accepts_opt_step(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_opt_step(node);
}

void gvk_encode_opt_step(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_opt_step, node, 5, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->op == GGML_OP_OPT_STEP_ADAMW);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}
