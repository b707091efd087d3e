// SPDX-License-Identifier: MIT
// cpy, cont, dup: moves, conversions to types without blocks, and to types with blocks.
#include "gpu/base/shape.h"
#include "ops/move.h"
#include "ops/runs.h"

enum { PACK_GROUP = 32 };

// Copies without conversion: rows of whole blocks, side by side, on both sides.
bool gvk_accepts_move(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && gpu_nelements(a) == gpu_nelements(node) &&
           ggml_rows_separable(a) && ggml_rows_separable(node);
}

// Three cases: the same shape; both packed, which is one long row; or items in logical order
// from one shape to another.
void gvk_encode_copy(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    struct gvk_move move = gvk_move_of(a, node->nb, 0);
    if (!ggml_are_same_shape(node, a)) {
        const struct gvk_move back = gvk_move_of(node, a->nb, 0);
        if (ggml_is_packed(a) && ggml_is_packed(node)) {
            move.ne[0] = move.ne[0] * move.ne[1] * move.ne[2] * move.ne[3];
            move.ne[1] = move.ne[2] = move.ne[3] = 1;
            move.from[0] = move.to[0] = move.size;
        } else {
            move.mode = GVK_MOVE_RESHAPE;
            for (int d = 0; d < GGML_MAX_DIMS; ++d)
                move.other[d] = back.ne[d];
        }
    }
    gvk_encode_move(plan, node, a, move);
}

// Whether several elements of the type share scales.
static bool has_blocks(const struct ggml_tensor *t) {
    return ggml_blck_size(t->type) > 1;
}

static bool is_float(const struct ggml_tensor *t) {
    return t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_BF16;
}

// Blocks are unpacked four elements at a time.
bool gvk_accepts_convert(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    return gpu_nelements(a) == gpu_nelements(node) &&
           (!has_blocks(a) ||
            (ggml_rows_dense(a) && ggml_has_whole_blocks(a) && node->ne[0] % GVK_RUN == 0));
}

// Chooses the widest way that the layouts allow: one row of vectors, vectors by row, or single
// elements.
void gvk_encode_convert(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const enum gvk_shader shader = gvk_has_grid(a) ? GVK_SHADER_convert_grid : GVK_SHADER_convert;
    struct gvk_dispatch *d = gvk_dispatch_new(plan, shader, node, 1, GVK_RUN_GROUP);
    if (!d) return;
    gvk_dispatch_grids(d, 2, a);
    const bool fours = a->ne[0] % GVK_RUN == 0 && node->ne[0] % GVK_RUN == 0;
    const bool flat = fours && ggml_is_packed(a) && ggml_is_packed(node);
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, a->type);
    gvk_dispatch_spec(d, has_blocks(a));
    gvk_dispatch_spec(d, fours);
    gvk_dispatch_spec(d, fours && is_float(node) && gvk_run_vectors(node, node, flat));
    gvk_dispatch_spec(d, fours && is_float(a) && gvk_run_vectors(a, node, flat));
    gvk_dispatch_spec(d, flat ? 1 : 4);
    gvk_dispatch_runs(plan, d, node, flat);
}

// Elements that an invocation encodes.
static int64_t pack_block(enum ggml_type type) {
    return ggml_blck_size(type);
}

// What convert accepts, where the result has rows of whole blocks.
bool gvk_accepts_pack(const struct gvk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return gvk_accepts_convert(features, node) && ggml_has_whole_blocks(node) &&
           ggml_rows_dense(node) && a->ne[0] % pack_block(node->type) == 0;
}

// The module by the size of a block, as an invocation holds a block in registers.
static enum gvk_shader pack_shader(enum ggml_type type) {
    switch (pack_block(type)) {
    case 32: return GVK_SHADER_pack_small;
    case 64: return GVK_SHADER_pack_medium_64;
    case 128: return GVK_SHADER_pack_medium_128;
    default: return GVK_SHADER_pack_large;
    }
}

// A launch that encodes a block per invocation. `rows`: for set_rows, with indices in src1.
static void encode_pack(struct gvk_plan *plan, const struct ggml_tensor *node, bool rows) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, pack_shader(node->type), node, 2, PACK_GROUP);
    if (!d) return;
    const struct ggml_tensor *a = node->src[0];
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, a->type);
    gvk_dispatch_spec(d, has_blocks(a));
    gvk_dispatch_spec(d, rows);
    gvk_dispatch_spec(d, rows && node->src[1]->type == GGML_TYPE_I64);
    const uint64_t blocks = gpu_nelements(a) / (uint64_t)pack_block(node->type);
    gvk_dispatch_groups(plan, d, gpu_groups_of(blocks, PACK_GROUP));
}

void gvk_encode_pack(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_pack(plan, node, false);
}

// --- rows by index -------------------------------------------------------------------------------

bool gvk_accepts_get_rows(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_get_rows(node) && ggml_rows_dense(node->src[0]) && ggml_rows_dense(node);
}

// Types with grids have a module of their own, which alone binds the tables.
void gvk_encode_get_rows(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const enum gvk_shader shader = gvk_has_grid(a) ? GVK_SHADER_get_rows_grid : GVK_SHADER_get_rows;
    struct gvk_dispatch *d = gvk_dispatch_new(plan, shader, node, 2, GVK_RUN_GROUP);
    if (!d) return;
    gvk_dispatch_grids(d, 3, a);
    gvk_dispatch_spec(d, a->type);
    gvk_dispatch_spec(d, has_blocks(a));
    gvk_dispatch_spec(d, gvk_run_vectors(node, node, false) &&
                             (has_blocks(a) || gvk_run_vectors(a, node, false)));
    gvk_dispatch_spec(d, gvk_run_dims(node, false));
    gvk_dispatch_runs(plan, d, node, false);
}

bool gvk_accepts_set_rows(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_set_rows(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

// Results with blocks are encoded by the pack shaders.
void gvk_encode_set_rows(struct gvk_plan *plan, const struct ggml_tensor *node) {
    if (has_blocks(node)) {
        encode_pack(plan, node, true);
        return;
    }
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_set_rows, node, 2, GVK_RUN_GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, node->src[1]->type == GGML_TYPE_I64);
    gvk_dispatch_spec(d, gvk_run_vectors(node, node, false) &&
                             gvk_run_vectors(node->src[0], node, false));
    gvk_dispatch_spec(d, gvk_run_dims(node->src[0], false));
    gvk_dispatch_runs(plan, d, node->src[0], false);
}
