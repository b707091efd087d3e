// SPDX-License-Identifier: MIT
// Functions of one operand: the family of GGML_OP_UNARY, and those that are operations themselves.
#include "gpu/base/nodes.h"
#include "ops/runs.h"

bool vk_accepts_map(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    return ggml_are_same_shape(node, a) && ggml_rows_dense(node) && ggml_rows_dense(a);
}

bool vk_accepts_unary(const struct vk_features *features, const struct ggml_tensor *node) {
    const int32_t op = node->op_params[0];
    return op >= 0 && op < GGML_UNARY_OP_COUNT && vk_accepts_map(features, node);
}

void vk_encode_unary(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_unary, node, 1, VK_RUN_GROUP);
    if (!d) return;
    const bool flat = ggml_is_packed(node) && ggml_is_packed(node->src[0]);
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, node->src[0]->type);
    vk_dispatch_spec(d, vk_run_dims(node, flat));
    vk_dispatch_spec(d, (uint32_t)gpu_function_of(node)); // as shaders/unary.comp has them
    vk_dispatch_spec(d,
                     vk_run_vectors(node, node, flat) && vk_run_vectors(node->src[0], node, flat));
    vk_dispatch_runs(plan, d, node, flat);
}
