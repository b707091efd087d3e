// SPDX-License-Identifier: MIT
// Functions of one operand: the family of GGML_OP_UNARY, and those that are operations themselves.
#include "gpu/base/nodes.h"
#include "ops/runs.h"

bool gvk_accepts_map(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    return ggml_are_same_shape(node, a) && ggml_rows_dense(node) && ggml_rows_dense(a);
}

bool gvk_accepts_unary(const struct gvk_features *features, const struct ggml_tensor *node) {
    const int32_t op = node->op_params[0];
    return op >= 0 && op < GGML_UNARY_OP_COUNT && gvk_accepts_map(features, node);
}

// One shader for all functions of one operand: the function is a constant of the pipeline.
void gvk_encode_unary(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_unary, node, 1, GVK_RUN_GROUP);
    if (!d) return;
    const bool flat = ggml_is_packed(node) && ggml_is_packed(node->src[0]);
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, gvk_run_dims(node, flat));
    gvk_dispatch_spec(d, (uint32_t)gpu_function_of(node)); // as shaders/unary.comp has them
    gvk_dispatch_spec(d, gvk_run_vectors(node, node, flat) &&
                             gvk_run_vectors(node->src[0], node, flat));
    gvk_dispatch_runs(plan, d, node, flat);
}
