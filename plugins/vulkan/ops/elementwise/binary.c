// SPDX-License-Identifier: MIT
// add, sub, mul, div: dst = a . b with b repeated to a's shape; add_id.
#include "gpu/base/nodes.h"
#include "ops/runs.h"

enum { REPEAT_NOT, REPEAT_ONE, REPEAT_MANY }; // as in shaders/binary.comp

bool gvk_accepts_binary(const struct gvk_features *features, const struct ggml_tensor *node) {
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

// Whole tensors are treated as one row where shapes allow it; the layout of b, which repeats,
// decides how its elements are addressed.
void gvk_encode_binary(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_binary, node, 2, GVK_RUN_GROUP);
    if (!d) return;
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const bool flat = ggml_is_packed(node) && ggml_is_packed(a) &&
                      (gpu_nelements(b) == 1 || (ggml_are_same_shape(a, b) && ggml_is_packed(b)));
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, a->type);
    gvk_dispatch_spec(d, gvk_run_dims(node, flat));
    gvk_dispatch_spec(d, b->type);
    gvk_dispatch_spec(d, (uint32_t)gpu_binary_function_of(node->op));
    const uint32_t repeat = repeat_of(node, b, flat);
    gvk_dispatch_spec(d, repeat);
    gvk_dispatch_spec(d, repeat != REPEAT_MANY && gvk_run_vectors(node, node, flat) &&
                             gvk_run_vectors(a, node, flat) &&
                             (repeat == REPEAT_ONE || gvk_run_vectors(b, node, flat)));
    gvk_dispatch_spec(d, rows_of(node, b));
    gvk_dispatch_runs(plan, d, node, flat);
}

bool gvk_accepts_add_id(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_add_id(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]) &&
           ggml_rows_dense(node->src[1]);
}

void gvk_encode_add_id(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_add_id, node, 3, GVK_RUN_GROUP);
    if (d) gvk_dispatch_runs(plan, d, node, false);
}
