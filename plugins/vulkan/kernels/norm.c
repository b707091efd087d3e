// SPDX-License-Identifier: MIT
// norm, rms_norm, l2_norm, group_norm.
#include "kernels/group.h"
#include "shape.h"

bool vk_accepts_norm(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return vk_same_shape(node, node->src[0]) && vk_rows_dense(node);
}

void vk_encode_norm(struct vk_plan *plan, const struct ggml_tensor *node) {
    const uint32_t group = vk_row_group(vk_plan_features(plan), node->ne[0]);
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_norm, node, 1, group);
    if (!d) return;
    vk_dispatch_spec(d, node->op == GGML_OP_NORM ? 0 : node->op == GGML_OP_RMS_NORM ? 1 : 2);
    vk_dispatch_groups(plan, d, vk_nrows(node));
}

bool vk_accepts_group_norm(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return node->op_params[0] > 0 && vk_same_shape(node, node->src[0]);
}

void vk_encode_group_norm(struct vk_plan *plan, const struct ggml_tensor *node) {
    const uint64_t groups = (uint64_t)node->op_params[0];
    const uint64_t channels = vk_groups_of((uint64_t)node->ne[2], groups);
    const int64_t n = node->ne[0] * node->ne[1] * (int64_t)channels;
    const uint32_t size = vk_row_group(vk_plan_features(plan), n);
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_group_norm, node, 1, size);
    if (!d) return;
    d->numbers[0] = (uint32_t)channels;
    vk_dispatch_groups(plan, d, vk_nelements(node) ? groups * (uint64_t)node->ne[3] : 0);
}
