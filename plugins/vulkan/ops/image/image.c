// SPDX-License-Identifier: MIT
// Pooling, resampling, padding, rotation and windows.
#include "gpu/base/shape.h"
#include "plan/kernel.h"

enum { GROUP = 64 };

// Modes of shaders/move.comp.
enum move_mode { PAD, PAD_CIRCULAR, PAD_REFLECT, ROLL, WIN_PART, WIN_UNPART, GET_REL_POS };

// A launch of move.comp, in which each element of the result finds its source.
static void encode_move(struct gvk_plan *plan, const struct ggml_tensor *node,
                        enum move_mode mode) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_move, node, 1, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, (uint32_t)ggml_type_size(node->type));
    gvk_dispatch_spec(d, mode);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

// --- pooling -------------------------------------------------------------------------------------

// The shader's indices have 32 bits.
static bool accepts_pool(const struct ggml_tensor *out, const struct ggml_tensor *in,
                         const int32_t *p, int dims) {
    for (int d = 0; d < dims; ++d) {
        if (in->ne[d] >= INT32_MAX || out->ne[d] >= INT32_MAX) return false;
    }
    return ggml_fits_pool(out, in, p, dims);
}

bool gvk_accepts_pool_1d(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return accepts_pool(node, node->src[0], node->op_params, 1);
}

bool gvk_accepts_pool_2d(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return accepts_pool(node, node->src[0], node->op_params, 2);
}

// One invocation per window.
void gvk_encode_pool(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_pool, node, 1, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, node->op == GGML_OP_POOL_1D ? 1 : 2);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

bool gvk_accepts_pool_2d_back(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_are_same_shape(node, node->src[1]) &&
           accepts_pool(node->src[0], node, node->op_params, 2);
}

// An invocation per element of the gradient, which gathers: atomic additions of floats are not
// everywhere.
void gvk_encode_pool_2d_back(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_pool_back, node, 2, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->src[1]->type);
    gvk_dispatch_spec(d, 2);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

// --- resampling, padding -------------------------------------------------------------------------

// The shader's fractions have 31 bits.
static bool fraction_fits(const struct ggml_tensor *node, int d) {
    const int64_t limit = INT32_MAX;
    return node->ne[d] < limit / 4 && (2 * node->ne[d] + 1) <= limit / (node->src[0]->ne[d] + 1);
}

bool gvk_accepts_upscale(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_upscale(node) && fraction_fits(node, 0) && fraction_fits(node, 1);
}

// Scales are passed as floats, rounded as the CPU rounds them, so that both choose the same
// neighbours.
void gvk_encode_upscale(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint32_t bits = (uint32_t)node->op_params[0];
    const uint32_t mode = bits & 0xFFu;
    const bool align = bits & GGML_SCALE_FLAG_ALIGN_CORNERS;
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_upscale, node, 1, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, mode == GGML_SCALE_MODE_NEAREST    ? 0
                         : mode == GGML_SCALE_MODE_BICUBIC  ? 2
                         : bits & GGML_SCALE_FLAG_ANTIALIAS ? 3
                                                            : 1);
    gvk_dispatch_spec(d, align);
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        const int64_t to = node->ne[i], from = node->src[0]->ne[i];
        const int inner = align && i < 2 && to > 1 && from > 1;
        const float scale = (float)(to - inner) / (float)(from - inner);
        memcpy(&d->numbers[i], &scale, sizeof(scale));
    }
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

bool gvk_accepts_pad(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_pad(node);
}

void gvk_encode_pad(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, node->op_params[8] ? PAD_CIRCULAR : PAD);
}

bool gvk_accepts_pad_reflect_1d(const struct gvk_features *features,
                                const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_pad_reflect_1d(node);
}

void gvk_encode_pad_reflect_1d(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, PAD_REFLECT);
}

bool gvk_accepts_roll(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_roll(node);
}

void gvk_encode_roll(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, ROLL);
}

// --- windows -------------------------------------------------------------------------------------

bool gvk_accepts_win_part(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_win_part(node);
}

void gvk_encode_win_part(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, WIN_PART);
}

bool gvk_accepts_win_unpart(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_win_unpart(node);
}

void gvk_encode_win_unpart(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, WIN_UNPART);
}

bool gvk_accepts_get_rel_pos(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_get_rel_pos(node);
}

void gvk_encode_get_rel_pos(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, GET_REL_POS);
}

bool gvk_accepts_add_rel_pos(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_add_rel_pos(node);
}

void gvk_encode_add_rel_pos(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_add_rel_pos, node, 3, GROUP);
    if (d) gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}
