// SPDX-License-Identifier: MIT
// cpy, cont, dup: moves, conversions to types without blocks, and to types with blocks.
#include "gpu/base/shape.h"
#include "ops/move.h"
#include "ops/runs.h"

enum { PACK_GROUP = 32 };

bool vk_accepts_move(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && gpu_nelements(a) == gpu_nelements(node) &&
           ggml_has_whole_blocks(a) && ggml_has_whole_blocks(node);
}

void vk_encode_copy(struct vk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    struct vk_move move = vk_move_of(a, node->nb, 0);
    if (!ggml_are_same_shape(node, a)) {
        const struct vk_move back = vk_move_of(node, a->nb, 0);
        if (ggml_is_packed(a) && ggml_is_packed(node)) {
            move.ne[0] = move.ne[0] * move.ne[1] * move.ne[2] * move.ne[3];
            move.ne[1] = move.ne[2] = move.ne[3] = 1;
            move.from[0] = move.to[0] = move.size;
        } else {
            move.mode = VK_MOVE_RESHAPE;
            for (int d = 0; d < GGML_MAX_DIMS; ++d)
                move.other[d] = back.ne[d];
        }
    }
    vk_encode_move(plan, node, a, move);
}

static bool has_blocks(const struct ggml_tensor *t) {
    return ggml_blck_size(t->type) > 1;
}

static bool is_float(const struct ggml_tensor *t) {
    return t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_BF16;
}

// Blocks are unpacked four elements at a time.
bool vk_accepts_convert(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    return gpu_nelements(a) == gpu_nelements(node) &&
           (!has_blocks(a) ||
            (ggml_rows_dense(a) && ggml_has_whole_blocks(a) && node->ne[0] % VK_RUN == 0));
}

void vk_encode_convert(struct vk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const enum vk_shader shader = vk_has_grid(a) ? VK_SHADER_convert_grid : VK_SHADER_convert;
    struct vk_dispatch *d = vk_dispatch_new(plan, shader, node, 1, VK_RUN_GROUP);
    if (!d) return;
    vk_dispatch_grids(d, 2, a);
    const bool fours = a->ne[0] % VK_RUN == 0 && node->ne[0] % VK_RUN == 0;
    const bool flat = fours && ggml_is_packed(a) && ggml_is_packed(node);
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, a->type);
    vk_dispatch_spec(d, has_blocks(a));
    vk_dispatch_spec(d, fours);
    vk_dispatch_spec(d, fours && is_float(node) && vk_run_vectors(node, node, flat));
    vk_dispatch_spec(d, fours && is_float(a) && vk_run_vectors(a, node, flat));
    vk_dispatch_spec(d, flat ? 1 : 4);
    vk_dispatch_runs(plan, d, node, flat);
}

// Elements that an invocation encodes.
static int64_t pack_block(enum ggml_type type) {
    return ggml_blck_size(type);
}

bool vk_accepts_pack(const struct vk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return vk_accepts_convert(features, node) && ggml_has_whole_blocks(node) &&
           ggml_rows_dense(node) && a->ne[0] % pack_block(node->type) == 0;
}

static enum vk_shader pack_shader(enum ggml_type type) {
    switch (pack_block(type)) {
    case 32: return VK_SHADER_pack_small;
    case 64: return VK_SHADER_pack_medium_64;
    case 128: return VK_SHADER_pack_medium_128;
    default: return VK_SHADER_pack_large;
    }
}

static void encode_pack(struct vk_plan *plan, const struct ggml_tensor *node, bool rows) {
    struct vk_dispatch *d = vk_dispatch_new(plan, pack_shader(node->type), node, 2, PACK_GROUP);
    if (!d) return;
    const struct ggml_tensor *a = node->src[0];
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, a->type);
    vk_dispatch_spec(d, has_blocks(a));
    vk_dispatch_spec(d, rows);
    vk_dispatch_spec(d, rows && node->src[1]->type == GGML_TYPE_I64);
    const uint64_t blocks = gpu_nelements(a) / (uint64_t)pack_block(node->type);
    vk_dispatch_groups(plan, d, gpu_groups_of(blocks, PACK_GROUP));
}

void vk_encode_pack(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_pack(plan, node, false);
}

// --- rows by index -------------------------------------------------------------------------------

bool vk_accepts_get_rows(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_get_rows(node) && ggml_rows_dense(node->src[0]) && ggml_rows_dense(node);
}

void vk_encode_get_rows(struct vk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const enum vk_shader shader = vk_has_grid(a) ? VK_SHADER_get_rows_grid : VK_SHADER_get_rows;
    struct vk_dispatch *d = vk_dispatch_new(plan, shader, node, 2, VK_RUN_GROUP);
    if (!d) return;
    vk_dispatch_grids(d, 3, a);
    vk_dispatch_spec(d, a->type);
    vk_dispatch_spec(d, has_blocks(a));
    vk_dispatch_spec(d, vk_run_vectors(node, node, false) &&
                            (has_blocks(a) || vk_run_vectors(a, node, false)));
    vk_dispatch_spec(d, vk_run_dims(node, false));
    vk_dispatch_runs(plan, d, node, false);
}

bool vk_accepts_set_rows(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_set_rows(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

void vk_encode_set_rows(struct vk_plan *plan, const struct ggml_tensor *node) {
    if (has_blocks(node)) {
        encode_pack(plan, node, true);
        return;
    }
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_set_rows, node, 2, VK_RUN_GROUP);
    if (!d) return;
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, node->src[0]->type);
    vk_dispatch_spec(d, node->src[1]->type == GGML_TYPE_I64);
    vk_dispatch_spec(d, vk_run_vectors(node, node, false) &&
                            vk_run_vectors(node->src[0], node, false));
    vk_dispatch_spec(d, vk_run_dims(node->src[0], false));
    vk_dispatch_runs(plan, d, node->src[0], false);
}
