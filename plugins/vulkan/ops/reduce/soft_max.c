// SPDX-License-Identifier: MIT
// soft_max with mask, ALiBi and sinks; and what keeps a triangle of each matrix: the causal mask
// and tri.
#include "gpu/base/nodes.h"
#include "gpu/base/shape.h"
#include "ops/group.h"

enum { GROUP = 64 };

bool gvk_accepts_soft_max(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_soft_max(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

// A group per row; mask and sinks are optional, and constants of the pipeline.
void gvk_encode_soft_max(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint32_t group = gvk_row_group(gvk_plan_features(plan), node->ne[0], GVK_ROW_PASSES);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_soft_max, node, 3, group);
    if (!d) return;
    const struct ggml_tensor *mask = node->src[1];
    gvk_dispatch_spec(d, mask != NULL);
    gvk_dispatch_spec(d, mask ? (uint32_t)mask->type : 0);
    gvk_dispatch_spec(d, node->src[2] != NULL);
    gvk_dispatch_spec(d, node->ne[0] % 4 == 0 && gpu_rows_aligned(node, 16) &&
                             gpu_rows_aligned(node->src[0], 16));
    gvk_dispatch_spec(d, mask && gpu_rows_aligned(mask, 4 * mask->nb[0]));
    d->numbers[0] = gpu_power_of_two_within(node->ne[2]); // of the heads
    gvk_dispatch_groups(plan, d, gpu_nrows(node));
}

bool gvk_accepts_diag_mask(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_are_same_shape(node, node->src[0]);
}

bool gvk_accepts_tri(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_tri(node);
}

// Masking by a comparison of column and row; the value is a constant of the pipeline.
void gvk_encode_diag_mask(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint32_t minus_infinity = UINT32_C(0xff800000);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_diag_mask, node, 1, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, gpu_kept_columns(node));
    gvk_dispatch_spec(d, node->op == GGML_OP_DIAG_MASK_INF ? minus_infinity : 0);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}
