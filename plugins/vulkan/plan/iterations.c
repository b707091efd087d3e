// SPDX-License-Identifier: MIT
// How many iterations the loops of a node's shaders take, for drivers that leave them too early. An
// estimate from above; kernels that can are launched several times instead
// (ops/recurrent/recurrent.c, ops/attention/attention.c).
#include "gpu/base/shape.h"
#include "ops/group.h"

enum { TRAINING_GROUP = 128 }; // of rows_back.comp and cross_entropy.comp

static uint64_t extent(const struct ggml_tensor *t, int d) {
    return (uint64_t)t->ne[d];
}

static uint64_t row_iterations(const struct gvk_features *features, uint64_t n, int passes) {
    const uint64_t most = MIN(features->max_group_size, (uint32_t)GVK_MAX_ROW_GROUP);
    return (n / (most ? most : 1) + 1) * (uint64_t)passes;
}

// Channels of a group of group_norm, and their elements.
static uint64_t group_elements(const struct ggml_tensor *node) {
    const uint64_t groups = (uint64_t)MAX(node->op_params[0], 1);
    return extent(node, 0) * extent(node, 1) * gpu_groups_of(extent(node, 2), groups);
}

// Iterations of n loops inside each other, of so many steps each, the outermost first. The one that
// finds that a loop has ended counts too, and goes through the loops inside it, once each.
static uint64_t nested(const uint64_t *steps, int n) {
    uint64_t all = 0;
    for (int inside = 0; inside < n; ++inside)
        all = steps[n - 1 - inside] * (all + 1) + 1 + (uint64_t)inside;
    return all;
}

#define NESTED(...)                                                                                \
    nested((const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

// Of the input a window of a pool covers this much at most.
static uint64_t pool_window(const struct ggml_tensor *in, const int32_t *p, int d) {
    return MIN((uint64_t)MAX(p[1 + d], 1), extent(in, d));
}

// The gradient of a largest element looks through every window that covers it.
static uint64_t pool_back_iterations(const struct ggml_tensor *node) {
    const int32_t *p = node->op_params;
    uint64_t covering[2];
    for (int d = 0; d < 2; ++d)
        covering[d] = MIN(gpu_groups_of((uint64_t)MAX(p[1 + d], 1), (uint64_t)MAX(p[3 + d], 1)),
                          extent(node->src[0], d));
    return NESTED(covering[1], covering[0], pool_window(node, p, 1), pool_window(node, p, 0));
}

// Columns of an image that reach an element of a transposed convolution along d.
static uint64_t reaching(const struct ggml_tensor *node, int d) {
    const uint64_t stride = (uint64_t)MAX(node->op_params[0], 1);
    return MIN(gpu_groups_of(extent(node->src[0], d), stride), extent(node->src[1], d));
}

// Elements under a triangle of upscale.comp along d.
static uint64_t triangle(const struct ggml_tensor *node, int d) {
    const uint64_t to = extent(node, d), from = extent(node->src[0], d);
    const bool inner = (node->op_params[0] & GGML_SCALE_FLAG_ALIGN_CORNERS) && to > 1 && from > 1;
    return MIN(2 * gpu_groups_of(from - inner, MAX(to - inner, 1)) + 2, from);
}

// The other modes take at most four elements each way.
static uint64_t upscale_iterations(const struct ggml_tensor *node) {
    const uint32_t bits = (uint32_t)node->op_params[0], mode = bits & 0xFFu;
    if (!(bits & GGML_SCALE_FLAG_ANTIALIAS) || mode != GGML_SCALE_MODE_BILINEAR) return 0;
    return NESTED(triangle(node, 1), triangle(node, 0));
}

// Bound on the loop iterations of one invocation of a node's kernel, for drivers that limit them;
// 0: no loop that grows with the shapes. Has to be kept in step with the shaders.
static uint64_t iterations_of(const struct gvk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    switch (node->op) {
    case GGML_OP_SUM_ROWS:
    case GGML_OP_MEAN:
    case GGML_OP_ARGMAX:
    case GGML_OP_NORM:
    case GGML_OP_RMS_NORM:
    case GGML_OP_L2_NORM:
    case GGML_OP_SOFT_MAX: return row_iterations(features, extent(a, 0), GVK_ROW_PASSES);
    case GGML_OP_CUMSUM: return row_iterations(features, extent(a, 0), GVK_CUMSUM_PASSES);
    case GGML_OP_GROUP_NORM: return row_iterations(features, group_elements(node), GVK_ROW_PASSES);
    case GGML_OP_RMS_NORM_BACK:
    case GGML_OP_SOFT_MAX_BACK: return GVK_ROW_PASSES * (extent(node, 0) / TRAINING_GROUP + 1);
    case GGML_OP_CROSS_ENTROPY_LOSS:
        return GVK_ROW_PASSES * (extent(a, 0) / TRAINING_GROUP + 1) + gpu_nrows(a) / TRAINING_GROUP;
    case GGML_OP_CROSS_ENTROPY_LOSS_BACK:
        return GVK_ROW_PASSES * (extent(node, 0) / TRAINING_GROUP + 1);
    case GGML_OP_POOL_1D: return NESTED(1, pool_window(a, node->op_params, 0));
    case GGML_OP_POOL_2D:
        return NESTED(pool_window(a, node->op_params, 1), pool_window(a, node->op_params, 0));
    case GGML_OP_POOL_2D_BACK: return pool_back_iterations(node);
    case GGML_OP_UPSCALE: return upscale_iterations(node);
    case GGML_OP_CONV_2D: return NESTED(1, extent(a, 1), extent(a, 0), extent(a, 2));
    case GGML_OP_CONV_3D:
        return NESTED(extent(a, 2), extent(a, 1), extent(a, 0), (uint64_t)node->op_params[9]);
    case GGML_OP_CONV_TRANSPOSE_1D: return NESTED(1, reaching(node, 0), extent(a, 2));
    case GGML_OP_CONV_TRANSPOSE_2D:
        return NESTED(reaching(node, 1), reaching(node, 0), extent(a, 3));
    case GGML_OP_CONV_2D_DW: return NESTED(extent(a, 1), extent(a, 0));
    case GGML_OP_IM2COL_BACK: return NESTED(node->op_params[6] ? extent(b, 1) : 1, extent(b, 0));
    case GGML_OP_SSM_CONV: return extent(b, 0);
    case GGML_OP_MUL_MAT:
    case GGML_OP_MUL_MAT_ID: return extent(a, 0) / 8 + 8;
    case GGML_OP_OUT_PROD: return NESTED(extent(a, 1), extent(a, 0) % 4);
    case GGML_OP_REPEAT_BACK: return gpu_nelements(a) / MAX(gpu_nelements(node), 1);
    case GGML_OP_GET_ROWS_BACK: return gpu_nelements(b);
    case GGML_OP_LIGHTNING_INDEXER: return NESTED(extent(a, 1), extent(a, 0));
    default: return 0;
    }
}

bool gvk_within_iterations(const struct gvk_features *features, const struct ggml_tensor *node) {
    return iterations_of(features, node) <= gvk_most_iterations(features);
}
