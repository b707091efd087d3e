// SPDX-License-Identifier: MIT
// soft_max with mask, ALiBi and sinks; and what keeps a triangle of each matrix: the causal mask
// and tri.
#include "gpu/base/nodes.h"
#include "gpu/base/shape.h"
#include "ops/group.h"

enum { GROUP = 64 };

bool vk_accepts_soft_max(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_soft_max(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

void vk_encode_soft_max(struct vk_plan *plan, const struct ggml_tensor *node) {
    const uint32_t group = vk_row_group(vk_plan_features(plan), node->ne[0], VK_ROW_PASSES);
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_soft_max, node, 3, group);
    if (!d) return;
    const struct ggml_tensor *mask = node->src[1];
    vk_dispatch_spec(d, mask != NULL);
    vk_dispatch_spec(d, mask ? (uint32_t)mask->type : 0);
    vk_dispatch_spec(d, node->src[2] != NULL);
    vk_dispatch_spec(d, node->ne[0] % 4 == 0 && gpu_rows_aligned(node, 16) &&
                            gpu_rows_aligned(node->src[0], 16));
    vk_dispatch_spec(d, mask && gpu_rows_aligned(mask, 4 * mask->nb[0]));
    d->numbers[0] = gpu_power_of_two_within(node->ne[2]); // of the heads
    vk_dispatch_groups(plan, d, gpu_nrows(node));
}

bool vk_accepts_diag_mask(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_are_same_shape(node, node->src[0]);
}

bool vk_accepts_tri(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_tri(node);
}

void vk_encode_diag_mask(struct vk_plan *plan, const struct ggml_tensor *node) {
    const uint32_t minus_infinity = UINT32_C(0xff800000);
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_diag_mask, node, 1, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, gpu_kept_columns(node));
    vk_dispatch_spec(d, node->op == GGML_OP_DIAG_MASK_INF ? minus_infinity : 0);
    vk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}
