// SPDX-License-Identifier: MIT
// norm, rms_norm, l2_norm, group_norm.
#include "gpu/base/shape.h"
#include "ops/group.h"

bool gvk_accepts_norm(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_are_same_shape(node, node->src[0]) && ggml_rows_dense(node);
}

enum { OP_NORM, OP_RMS_NORM, OP_L2_NORM, OP_GROUP_NORM }; // as in shaders/norm.comp

// The numbering of the shader.
static uint32_t function_of(enum ggml_op op) {
    switch (op) {
    case GGML_OP_NORM: return OP_NORM;
    case GGML_OP_RMS_NORM: return OP_RMS_NORM;
    case GGML_OP_L2_NORM: return OP_L2_NORM;
    default: return OP_GROUP_NORM;
    }
}

// Rows, or what counts as rows, of n elements, in parts of `part`.
static struct gvk_dispatch *encode_rows(struct gvk_plan *plan, const struct ggml_tensor *node,
                                        int64_t n, int64_t part, uint64_t rows) {
    const uint32_t size = gvk_row_group(gvk_plan_features(plan), n, GVK_ROW_PASSES);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_norm, node, 1, size);
    if (!d) return NULL;
    const struct ggml_tensor *a = node->src[0];
    gvk_dispatch_spec(d, function_of(node->op));
    gvk_dispatch_spec(d, part % 4 == 0 && ggml_rows_dense(a) && gpu_rows_aligned(node, 16) &&
                             gpu_rows_aligned(a, 16));
    gvk_dispatch_groups(plan, d, rows);
    return d;
}

void gvk_encode_norm(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_rows(plan, node, node->ne[0], node->ne[0], gpu_nrows(node));
}

bool gvk_accepts_group_norm(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return node->op_params[0] > 0 && ggml_are_same_shape(node, node->src[0]);
}

static bool packed_planes(const struct ggml_tensor *t) {
    return ggml_rows_dense(t) && t->nb[1] == t->nb[0] * (size_t)t->ne[0] &&
           t->nb[2] == t->nb[1] * (size_t)t->ne[1];
}

// Dense planes are normalised as rows that are as long as all channels of a group; other layouts
// have a shader of their own.
void gvk_encode_group_norm(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint64_t channels = gpu_groups_of((uint64_t)node->ne[2], (uint64_t)node->op_params[0]);
    const uint64_t groups = channels ? gpu_groups_of((uint64_t)node->ne[2], channels) : 0;
    const int64_t n = node->ne[0] * node->ne[1] * (int64_t)channels;
    const uint64_t rows = gpu_nelements(node) ? groups * (uint64_t)node->ne[3] : 0;
    struct gvk_dispatch *d;
    if (packed_planes(node) && packed_planes(node->src[0])) {
        d = encode_rows(plan, node, n, node->ne[0] * node->ne[1], rows);
    } else {
        const uint32_t size = gvk_row_group(gvk_plan_features(plan), n, GVK_ROW_PASSES);
        d = gvk_dispatch_new(plan, GVK_SHADER_group_norm, node, 1, size);
        if (d) gvk_dispatch_groups(plan, d, rows);
    }
    if (!d) return;
    d->numbers[0] = (uint32_t)channels;
    d->numbers[1] = (uint32_t)groups;
}
