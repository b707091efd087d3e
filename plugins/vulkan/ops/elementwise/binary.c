// SPDX-License-Identifier: MIT
// add, sub, mul, div: dst = a . b with b repeated to a's shape; add_id.
#include "gpu/base/nodes.h"
#include "ops/runs.h"

enum { REPEAT_NOT, REPEAT_ONE, REPEAT_MANY }; // as in shaders/binary.comp

bool vk_accepts_binary(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_binary(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

// How dimension 0 of the run is repeated, which in flat mode has all elements.
static uint32_t repeat_of(const struct ggml_tensor *node, const struct ggml_tensor *b, bool flat) {
    if (gpu_nelements(b) == 1) return REPEAT_ONE;
    if (flat) return REPEAT_NOT;
    if (b->ne[0] == 1) return REPEAT_ONE;
    return b->ne[0] == node->ne[0] ? REPEAT_NOT : REPEAT_MANY;
}

static uint32_t rows_of(const struct ggml_tensor *node, const struct ggml_tensor *b) {
    if (gpu_nrows(b) == 1) return REPEAT_ONE;
    return ggml_same_shape_from(b, node, 1) ? REPEAT_NOT : REPEAT_MANY;
}

void vk_encode_binary(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_binary, node, 2, VK_RUN_GROUP);
    if (!d) return;
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const bool flat = ggml_is_packed(node) && ggml_is_packed(a) &&
                      (gpu_nelements(b) == 1 || (ggml_are_same_shape(a, b) && ggml_is_packed(b)));
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, a->type);
    vk_dispatch_spec(d, vk_run_dims(node, flat));
    vk_dispatch_spec(d, b->type);
    vk_dispatch_spec(d, (uint32_t)gpu_binary_function_of(node->op));
    const uint32_t repeat = repeat_of(node, b, flat);
    vk_dispatch_spec(d, repeat);
    vk_dispatch_spec(d, repeat != REPEAT_MANY && vk_run_vectors(node, node, flat) &&
                            vk_run_vectors(a, node, flat) &&
                            (repeat == REPEAT_ONE || vk_run_vectors(b, node, flat)));
    vk_dispatch_spec(d, rows_of(node, b));
    vk_dispatch_runs(plan, d, node, flat);
}

bool vk_accepts_add_id(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_add_id(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]) &&
           ggml_rows_dense(node->src[1]);
}

void vk_encode_add_id(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_add_id, node, 3, VK_RUN_GROUP);
    if (d) vk_dispatch_runs(plan, d, node, false);
}
