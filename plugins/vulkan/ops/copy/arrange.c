// SPDX-License-Identifier: MIT
// concat, repeat, set, acc, diag: elements to other places.
#include "gpu/base/shape.h"
#include "ops/move.h"

enum { GROUP = 64 };

bool gvk_accepts_concat(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_concat(node);
}

// Two copies: the first source to the beginning, the second behind it along the dimension.
void gvk_encode_concat(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const int dim = node->op_params[0];
    const int64_t steps = dim == 0 ? a->ne[0] / ggml_blck_size(a->type) : a->ne[dim];
    gvk_encode_move(plan, node, a, gvk_move_of(a, node->nb, 0));
    gvk_encode_move(plan, node, b, gvk_move_of(b, node->nb, (size_t)steps * node->nb[dim]));
}

// Rows may have gaps, and blocks are repeated whole.
bool gvk_accepts_repeat(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && ggml_repeats(a, node) && ggml_rows_separable(a) &&
           ggml_rows_separable(node);
}

// One launch: each item of the result takes the source's item at its position modulo the
// extents.
void gvk_encode_repeat(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct gvk_move from = gvk_move_of(a, a->nb, 0);
    struct gvk_move move = gvk_move_of(node, node->nb, 0);
    move.mode = GVK_MOVE_REPEAT;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        move.from[d] = from.from[d];
        move.other[d] = from.ne[d];
    }
    gvk_encode_move(plan, node, a, move);
}

// --- regions -------------------------------------------------------------------------------------

// The part of the result that set and acc change, in the strides that the node gives in bytes.
struct region {
    size_t nb[GGML_MAX_DIMS];
    size_t offset;
};

// Strides and offset from op_params; the stride of dimension 0 is the type's.
static struct region region_of(const struct ggml_tensor *node) {
    return (struct region){
        .nb = {ggml_type_size(node->type), (uint32_t)node->op_params[0],
               (uint32_t)node->op_params[1], (uint32_t)node->op_params[2]},
        .offset = (uint32_t)node->op_params[3],
    };
}

// Bytes from the region's first to behind its last; 0 if rows overlap or blocks are cut.
static size_t region_extent(const struct ggml_tensor *b, const struct region *region) {
    const struct ggml_type_traits *type = ggml_get_type_traits(b->type);
    size_t extent = (size_t)(b->ne[0] / type->blck_size) * type->type_size;
    for (int d = 1; d < GGML_MAX_DIMS; ++d) {
        const size_t steps = (size_t)(b->ne[d] - 1);
        if (steps == 0) continue;
        if (region->nb[d] % type->type_size != 0 || region->nb[d] < extent) return 0;
        if (steps > (SIZE_MAX - extent) / region->nb[d]) return 0;
        extent += steps * region->nb[d];
    }
    return extent;
}

// Whether the region lies within the result and its rows don't overlap: parameters come from the
// application.
bool gvk_accepts_region(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const struct region region = region_of(node);
    if (a->type != node->type || b->type != node->type || !ggml_are_same_shape(node, a) ||
        !ggml_is_packed(node) || !ggml_is_packed(a) || !ggml_rows_separable(b))
        return false;
    if (gpu_nelements(b) == 0) return true;
    const struct ggml_type_traits *type = ggml_get_type_traits(node->type);
    const size_t extent = region_extent(b, &region);
    const size_t size = (size_t)(gpu_nelements(node) / (uint64_t)type->blck_size) * type->type_size;
    return extent > 0 && region.offset % type->type_size == 0 && extent <= size &&
           region.offset <= size - extent;
}

// Copies src0 to the result, of which the region changes only a part.
static void copy_source(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const bool in_place = node->op_params[4] != 0;
    if (!in_place)
        gvk_encode_move(plan, node, node->src[0], gvk_move_of(node->src[0], node->nb, 0));
}

void gvk_encode_set(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct region region = region_of(node);
    copy_source(plan, node);
    gvk_encode_move(plan, node, node->src[1], gvk_move_of(node->src[1], region.nb, region.offset));
}

void gvk_encode_acc(struct gvk_plan *plan, const struct ggml_tensor *node) {
    copy_source(plan, node);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_accumulate, node, 2, GROUP);
    if (d) gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node->src[1]), GROUP));
}

bool gvk_accepts_diag(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_diag(node);
}

// Elements are moved as units of at most four bytes, so that one shader serves all types.
void gvk_encode_diag(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_diag, node, 1, GROUP);
    if (!d) return;
    const uint32_t size = (uint32_t)ggml_type_size(node->type);
    const uint32_t unit = size < 4 ? size : 4;
    gvk_dispatch_spec(d, unit);
    gvk_dispatch_spec(d, size / unit);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}
