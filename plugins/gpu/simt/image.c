// SPDX-License-Identifier: MIT
// Pooling, resampling, reflected borders, windows and relative positions: kernels/image.cpp.
#include "simt/rows.h"

bool simt_accepts_pool(const struct ggml_tensor *node) {
    const int dims = node->op == GGML_OP_POOL_1D ? 1 : 2;
    return ggml_fits_pool(node, node->src[0], node->op_params, dims);
}

// The gradient is like the result of the node that it is of, the result like that one's source.
bool simt_accepts_pool_back(const struct ggml_tensor *node) {
    return ggml_are_same_shape(node, node->src[1]) &&
           ggml_fits_pool(node->src[0], node, node->op_params, 2);
}

void simt_launch_pool(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = node->op == GGML_OP_POOL_1D ? 1 : 2;
    simt_launch_elements(l, node);
}

// --- resampling ----------------------------------------------------------------------------------

// Extents whose products stay within 63 bits.
bool simt_accepts_upscale(const struct ggml_tensor *node) {
    for (int d = 0; d < 2; ++d) {
        if (node->ne[d] > INT32_MAX / 2 || node->src[0]->ne[d] > INT32_MAX / 2) return false;
    }
    return ggml_fits_upscale(node);
}

static gpu_number upscale_mode(uint32_t bits) {
    switch (bits & 0xffu) {
    case GGML_SCALE_MODE_NEAREST: return 0;
    case GGML_SCALE_MODE_BICUBIC: return 2;
    default: return bits & GGML_SCALE_FLAG_ANTIALIAS ? 3 : 1;
    }
}

// Ratios are rounded to floats, which decide about the nearest element.
void simt_launch_upscale(struct simt_work *l, const struct ggml_tensor *node) {
    const uint32_t bits = (uint32_t)node->op_params[0];
    const bool aligned = (bits & GGML_SCALE_FLAG_ALIGN_CORNERS) != 0;
    l->args.numbers[0] = upscale_mode(bits);
    l->args.numbers[1] = aligned;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t to = node->ne[d], from = node->src[0]->ne[d];
        const int64_t less = aligned && d < 2 && to > 1 && from > 1;
        l->args.reals[d].high = (float)(to - less) / (float)(from - less);
        if (d < 2) l->args.numbers[2 + d] = (to - less) << 32 | (from - less);
    }
    simt_launch_elements(l, node);
}

// --- elements from elsewhere ---------------------------------------------------------------------

bool simt_accepts_pad_reflect(const struct ggml_tensor *node) {
    return ggml_fits_pad_reflect_1d(node);
}

bool simt_accepts_win_part(const struct ggml_tensor *node) {
    return ggml_fits_win_part(node);
}

bool simt_accepts_win_unpart(const struct ggml_tensor *node) {
    return ggml_fits_win_unpart(node);
}

bool simt_accepts_get_rel_pos(const struct ggml_tensor *node) {
    return ggml_fits_get_rel_pos(node);
}

bool simt_accepts_add_rel_pos(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_F32) && ggml_fits_add_rel_pos(node);
}
