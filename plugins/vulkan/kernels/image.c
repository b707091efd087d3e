// SPDX-License-Identifier: MIT
// Pooling, resampling, padding, rotation and windows.
#include "kernel.h"
#include "shape.h"

enum { GROUP = 64 };

// Modes of shaders/move.comp.
enum move_mode { PAD, PAD_CIRCULAR, PAD_REFLECT, ROLL, WIN_PART, WIN_UNPART, GET_REL_POS };

static bool same_outer(const struct ggml_tensor *a, const struct ggml_tensor *b, int first) {
    for (int d = first; d < GGML_MAX_DIMS; ++d) {
        if (a->ne[d] != b->ne[d]) return false;
    }
    return true;
}

static void encode_move(struct vk_plan *plan, const struct ggml_tensor *node, enum move_mode mode) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_move, node, 1, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, (uint32_t)vk_type_size(node->type).size);
    vk_dispatch_spec(d, mode);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}

// --- pooling -------------------------------------------------------------------------------------

// Windows that start inside the padded source; the padding may have been fractional.
static bool accepts_windows(int64_t out, int64_t in, int k, int s, int p) {
    return k > 0 && s > 0 && p >= 0 && in < INT32_MAX && out < INT32_MAX &&
           out - 1 <= (in + 2 * ((int64_t)p + 1) - k) / s;
}

static bool accepts_pool(const struct ggml_tensor *out, const struct ggml_tensor *in,
                         const int32_t *p, int dims) {
    if (p[0] != GGML_OP_POOL_MAX && p[0] != GGML_OP_POOL_AVG) return false;
    for (int d = 0; d < dims; ++d) {
        const bool fits =
            accepts_windows(out->ne[d], in->ne[d], p[1 + d], p[1 + dims + d], p[1 + 2 * dims + d]);
        if (!fits) return false;
    }
    return same_outer(out, in, dims);
}

bool vk_accepts_pool_1d(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return accepts_pool(node, node->src[0], node->op_params, 1);
}

bool vk_accepts_pool_2d(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return accepts_pool(node, node->src[0], node->op_params, 2);
}

void vk_encode_pool(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_pool, node, 1, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, node->src[0]->type);
    vk_dispatch_spec(d, node->op == GGML_OP_POOL_1D ? 1 : 2);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}

bool vk_accepts_pool_2d_back(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return vk_same_shape(node, node->src[1]) &&
           accepts_pool(node->src[0], node, node->op_params, 2);
}

void vk_encode_pool_2d_back(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_pool_back, node, 2, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, node->src[1]->type);
    vk_dispatch_spec(d, 2);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}

// --- resampling, padding -------------------------------------------------------------------------

// The shader's fractions have 31 bits.
static bool fraction_fits(const struct ggml_tensor *node, int d) {
    const int64_t limit = INT32_MAX;
    return node->ne[d] < limit / 4 && (2 * node->ne[d] + 1) <= limit / (node->src[0]->ne[d] + 1);
}

bool vk_accepts_upscale(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const uint32_t flags = GGML_SCALE_FLAG_ALIGN_CORNERS | GGML_SCALE_FLAG_ANTIALIAS;
    const uint32_t bits = (uint32_t)node->op_params[0];
    const uint32_t mode = bits & ~flags;
    if (bits & GGML_SCALE_FLAG_ANTIALIAS && mode != GGML_SCALE_MODE_BILINEAR) return false;
    return mode < GGML_SCALE_MODE_COUNT && node->type == node->src[0]->type &&
           vk_nelements(node->src[0]) > 0 && fraction_fits(node, 0) && fraction_fits(node, 1);
}

void vk_encode_upscale(struct vk_plan *plan, const struct ggml_tensor *node) {
    const uint32_t bits = (uint32_t)node->op_params[0];
    const uint32_t mode = bits & 0xFFu;
    const bool align = bits & GGML_SCALE_FLAG_ALIGN_CORNERS;
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_upscale, node, 1, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, node->src[0]->type);
    vk_dispatch_spec(d, mode == GGML_SCALE_MODE_NEAREST    ? 0
                        : mode == GGML_SCALE_MODE_BICUBIC  ? 2
                        : bits & GGML_SCALE_FLAG_ANTIALIAS ? 3
                                                           : 1);
    vk_dispatch_spec(d, align);
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        const int64_t to = node->ne[i], from = node->src[0]->ne[i];
        const int inner = align && i < 2 && to > 1 && from > 1;
        const float scale = (float)(to - inner) / (float)(from - inner);
        memcpy(&d->numbers[i], &scale, sizeof(scale));
    }
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}

bool vk_accepts_pad(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    const bool circular = node->op_params[8] != 0;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t left = node->op_params[2 * d];
        const int64_t right = node->op_params[2 * d + 1];
        if (left < 0 || right < 0 || node->ne[d] != a->ne[d] + left + right) return false;
        if (circular && (left > a->ne[d] || right > a->ne[d])) return false;
    }
    return node->type == a->type;
}

void vk_encode_pad(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, node->op_params[8] ? PAD_CIRCULAR : PAD);
}

bool vk_accepts_pad_reflect_1d(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    const int64_t left = node->op_params[0];
    const int64_t right = node->op_params[1];
    return left >= 0 && right >= 0 && left < a->ne[0] && right < a->ne[0] &&
           node->ne[0] == a->ne[0] + left + right && same_outer(node, a, 1);
}

void vk_encode_pad_reflect_1d(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, PAD_REFLECT);
}

bool vk_accepts_roll(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t shift = node->op_params[d];
        if (shift <= -a->ne[d] || shift >= a->ne[d]) return false;
    }
    return node->type == a->type && vk_same_shape(node, a);
}

void vk_encode_roll(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, ROLL);
}

// --- windows -------------------------------------------------------------------------------------

static bool accepts_parts(const struct ggml_tensor *parts, const struct ggml_tensor *whole,
                          int64_t w) {
    if (w <= 0 || whole->ne[3] != 1 || parts->type != whole->type) return false;
    const int64_t npx = (whole->ne[1] + w - 1) / w;
    const int64_t npy = (whole->ne[2] + w - 1) / w;
    return parts->ne[0] == whole->ne[0] && parts->ne[1] == w && parts->ne[2] == w &&
           parts->ne[3] == npx * npy;
}

bool vk_accepts_win_part(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const int64_t w = node->op_params[2];
    const struct ggml_tensor *a = node->src[0];
    return accepts_parts(node, a, w) && node->op_params[0] == (a->ne[1] + w - 1) / w;
}

void vk_encode_win_part(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, WIN_PART);
}

bool vk_accepts_win_unpart(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return accepts_parts(node->src[0], node, node->op_params[0]);
}

void vk_encode_win_unpart(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, WIN_UNPART);
}

bool vk_accepts_get_rel_pos(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    const int64_t n = node->ne[1];
    return node->ne[2] == n && node->ne[3] == 1 && a->ne[0] == node->ne[0] && a->ne[1] == 2 * n - 1;
}

void vk_encode_get_rel_pos(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_move(plan, node, GET_REL_POS);
}

bool vk_accepts_add_rel_pos(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *pw = node->src[1];
    const struct ggml_tensor *ph = node->src[2];
    return vk_same_shape(pw, ph) && vk_same_shape(node, a) && a->ne[0] == pw->ne[0] * pw->ne[0] &&
           a->ne[1] == pw->ne[1] * pw->ne[2] && a->ne[2] == pw->ne[3] && a->ne[3] == 1 &&
           vk_contiguous(node) && vk_contiguous(a) && vk_contiguous(pw) && vk_contiguous(ph);
}

void vk_encode_add_rel_pos(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_add_rel_pos, node, 3, GROUP);
    if (d) vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}
