// SPDX-License-Identifier: MIT
// Gated linear units.
#include "ops/runs.h"

bool gvk_accepts_glu(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const int32_t op = node->op_params[0];
    return op >= 0 && op < GGML_GLU_OP_COUNT && ggml_fits_glu(node);
}

// x and the gate are two operands, or halves of the rows of one, in either order.
void gvk_encode_glu(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_glu, node, 2, GVK_RUN_GROUP);
    if (!d) return;
    const struct ggml_tensor *b = node->src[1];
    const bool flat =
        b && ggml_is_packed(node) && ggml_is_packed(node->src[0]) && ggml_is_packed(b);
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, (uint32_t)node->op_params[0]);
    gvk_dispatch_spec(d, gvk_run_dims(node, flat));
    gvk_dispatch_spec(d, b != NULL);
    gvk_dispatch_spec(d, node->op_params[1] != 0);
    gvk_dispatch_spec(d, gvk_run_vectors(node, node, flat) &&
                             gvk_run_vectors(node->src[0], node, flat) &&
                             (!b || gvk_run_vectors(b, node, flat)));
    gvk_dispatch_runs(plan, d, node, flat);
}
