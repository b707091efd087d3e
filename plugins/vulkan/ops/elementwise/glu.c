// SPDX-License-Identifier: MIT
// Gated linear units.
#include "ops/runs.h"

bool vk_accepts_glu(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const int32_t op = node->op_params[0];
    return op >= 0 && op < GGML_GLU_OP_COUNT && ggml_fits_glu(node);
}

void vk_encode_glu(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_glu, node, 2, VK_RUN_GROUP);
    if (!d) return;
    const struct ggml_tensor *b = node->src[1];
    const bool flat =
        b && ggml_is_packed(node) && ggml_is_packed(node->src[0]) && ggml_is_packed(b);
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, (uint32_t)node->op_params[0]);
    vk_dispatch_spec(d, vk_run_dims(node, flat));
    vk_dispatch_spec(d, b != NULL);
    vk_dispatch_spec(d, node->op_params[1] != 0);
    vk_dispatch_spec(d, vk_run_vectors(node, node, flat) &&
                            vk_run_vectors(node->src[0], node, flat) &&
                            (!b || vk_run_vectors(b, node, flat)));
    vk_dispatch_runs(plan, d, node, flat);
}
