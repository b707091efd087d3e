// SPDX-License-Identifier: MIT
// Layouts are simplified first (dimensions merged, items widened), which turns most copies into one
// long row of 16-byte items; what is left of dimensions is what the shader has to divide by.
#include "ops/move.h"

#include "gpu/base/shape.h"

enum { GROUP = 64, WIDEST = 16 };

// The move of all items of a tensor to a place with strides `to`. An item is an element or a
// block.
struct gvk_move gvk_move_of(const struct ggml_tensor *t, const size_t to[GGML_MAX_DIMS],
                            size_t offset) {
    const struct ggml_type_traits *type = ggml_get_type_traits(t->type);
    struct gvk_move move = {
        .mode = GVK_MOVE_PLACE, .size = type->type_size, .item = type->type_size, .offset = offset};
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        move.ne[d] = (uint64_t)(d == 0 ? t->ne[0] / type->blck_size : t->ne[d]);
        move.from[d] = t->nb[d];
        move.to[d] = to[d];
    }
    return move;
}

// Dimensions that follow each other in both layouts become one.
static void merge_dims(struct gvk_move *m) {
    int last = 0;
    for (int d = 1; d < GGML_MAX_DIMS; ++d) {
        if (m->ne[d] == 1) continue;
        if (m->ne[last] == 1 ||
            (m->from[d] == m->from[last] * m->ne[last] && m->to[d] == m->to[last] * m->ne[last])) {
            if (m->ne[last] == 1) {
                m->from[last] = m->from[d];
                m->to[last] = m->to[d];
            }
            m->ne[last] *= m->ne[d];
            continue;
        }
        ++last;
        m->ne[last] = m->ne[d];
        m->from[last] = m->from[d];
        m->to[last] = m->to[d];
    }
    while (++last < GGML_MAX_DIMS) {
        m->ne[last] = 1;
        m->from[last] = m->to[last] = 0;
    }
}

// Whether rows, strides, offset and addresses are multiples of the unit, so that items may be as
// wide.
static bool all_multiples(const struct gvk_move *m, size_t base, size_t unit) {
    bool fits = m->ne[0] * m->item % unit == 0 && m->offset % unit == 0 && base % unit == 0;
    for (int d = 1; d < GGML_MAX_DIMS; ++d)
        fits = fits && m->from[d] % unit == 0 && m->to[d] % unit == 0;
    return fits;
}

// Bytes at which every element may begin.
static size_t safe_unit(size_t size) {
    return size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
}

// Rows that are dense on both sides move in items of up to sixteen bytes; `base` has the bits of
// both addresses. Returns the unit.
static size_t widen_items(struct gvk_move *m, size_t base) {
    const bool whole_rows =
        m->mode == GVK_MOVE_PLACE || (m->mode == GVK_MOVE_REPEAT && m->ne[0] == m->other[0]);
    const size_t safe = safe_unit(m->size);
    if (!whole_rows || m->from[0] != m->item || m->to[0] != m->item) return safe;
    size_t unit = WIDEST;
    // 16, 4, 2, 1: the shader has no items of eight bytes.
    while (unit > safe && !all_multiples(m, base, unit))
        unit = unit == WIDEST ? 4 : unit / 2;
    if (unit <= safe) return safe;
    m->ne[0] = m->ne[0] * m->item / unit;
    m->item = m->from[0] = m->to[0] = unit;
    m->other[0] = m->ne[0];
    return unit;
}

// Whether columns are dense and become dense rows; then they are dimension 1.
// Copied directly, either reads or writes would be of single elements far apart; the shader takes
// tiles through shared memory instead. Below LEAST a tile is mostly empty.
static bool is_transposed(struct gvk_move *m) {
    enum { LEAST = 8 };
    if (m->mode != GVK_MOVE_PLACE || (m->size != 2 && m->size != 4) || m->offset != 0 ||
        m->to[0] != m->size || m->from[0] == m->size || m->ne[0] < LEAST)
        return false;
    for (int d = 1; d < GGML_MAX_DIMS; ++d) {
        if (m->from[d] != m->size || m->ne[d] < LEAST) continue;
        const uint64_t ne = m->ne[d];
        const size_t to = m->to[d];
        m->ne[d] = m->ne[1];
        m->from[d] = m->from[1];
        m->to[d] = m->to[1];
        m->ne[1] = ne;
        m->from[1] = m->size;
        m->to[1] = to;
        return true;
    }
    return false;
}

// Extents and strides, as copy.comp and transpose.comp read them.
static void set_layout(struct gvk_dispatch *d, const struct gvk_move *m) {
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        d->numbers[i] = (uint32_t)m->ne[i];
        d->numbers[4 + i] = (uint32_t)m->from[i];
        d->numbers[8 + i] = (uint32_t)m->to[i];
    }
}

// A launch of transpose.comp: a group per tile.
static void encode_transposed(struct gvk_plan *plan, const struct ggml_tensor *node,
                              const struct ggml_tensor *source, const struct gvk_move *m) {
    enum { TILE = 32, TILE_GROUP = 128 };
    const uint32_t group = gvk_plan_features(plan)->cpu ? TILE : TILE_GROUP;
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_transpose, node, 1, group);
    if (!d) return;
    d->operands[1].tensor = source;
    gvk_dispatch_spec(d, (uint32_t)m->size);
    set_layout(d, m);
    const uint64_t tiles = gpu_groups_of(m->ne[0], TILE) * gpu_groups_of(m->ne[1], TILE);
    gvk_dispatch_groups(plan, d, tiles * m->ne[2] * m->ne[3]);
}

// Simplifies the move and adds one launch for it. Extents and strides have to fit in 32 bits,
// which the device's largest buffer sees to.
void gvk_encode_move(struct gvk_plan *plan, const struct ggml_tensor *node,
                     const struct ggml_tensor *source, struct gvk_move move) {
    if (move.mode == GVK_MOVE_PLACE) merge_dims(&move);
    if (is_transposed(&move)) {
        encode_transposed(plan, node, source, &move);
        return;
    }
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_copy, node, 1, GROUP);
    if (!d) return;
    d->operands[1].tensor = source;
    const size_t unit = widen_items(&move, (uintptr_t)node->data | (uintptr_t)source->data);
    const uint32_t run = gvk_plan_features(plan)->cpu ? 4 : 1;
    gvk_dispatch_spec(d, move.mode);
    gvk_dispatch_spec(d, (uint32_t)move.item);
    gvk_dispatch_spec(d, (uint32_t)unit);
    gvk_dispatch_spec(d, run);
    gvk_dispatch_spec(d, move.ne[2] * move.ne[3] > 1 ? 4 : move.ne[1] > 1 ? 2 : 1);
    set_layout(d, &move);
    for (int i = 0; i < GGML_MAX_DIMS && move.mode != GVK_MOVE_PLACE; ++i)
        d->numbers[12 + i] = (uint32_t)move.other[i];
    if (move.mode == GVK_MOVE_PLACE) d->numbers[12] = (uint32_t)move.offset;
    const uint64_t rows = move.ne[1] * move.ne[2] * move.ne[3];
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_groups_of(move.ne[0], run) * rows, GROUP));
}
