// SPDX-License-Identifier: MIT
#include "kernel.h"
#include "shape.h"

enum { GROUP = 64 };

bool vk_accepts_unary(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return vk_same_shape(node, node->src[0]) && node->op_params[0] != GGML_UNARY_OP_XIELU;
}

void vk_encode_unary(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_unary, node, 1, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, node->src[0]->type);
    vk_dispatch_spec(d, (uint32_t)node->op_params[0]);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}
