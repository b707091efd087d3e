// SPDX-License-Identifier: MIT
#include "kernels/move.h"

#include "shape.h"

enum { GROUP = 64, WIDEST = 16 };

struct vk_move vk_move_of(const struct ggml_tensor *t, const size_t to[GGML_MAX_DIMS],
                          size_t offset) {
    const struct vk_type_size type = vk_type_size(t->type);
    struct vk_move move = {
        .mode = VK_MOVE_PLACE, .size = type.size, .item = type.size, .offset = offset};
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        move.ne[d] = (uint64_t)(d == 0 ? t->ne[0] / type.block : t->ne[d]);
        move.from[d] = t->nb[d];
        move.to[d] = to[d];
    }
    return move;
}

// Dimensions that follow each other in both layouts become one.
static void merge_dims(struct vk_move *m) {
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

static bool all_multiples(const struct vk_move *m, size_t unit) {
    bool fits = m->ne[0] * m->item % unit == 0 && m->offset % unit == 0;
    for (int d = 1; d < GGML_MAX_DIMS; ++d)
        fits = fits && m->from[d] % unit == 0 && m->to[d] % unit == 0;
    return fits;
}

// Bytes at which every element may begin.
static size_t safe_unit(size_t size) {
    return size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
}

// Rows that are dense on both sides move in items of up to sixteen bytes. Answers the unit.
static size_t widen_items(struct vk_move *m) {
    const bool whole_rows =
        m->mode == VK_MOVE_PLACE || (m->mode == VK_MOVE_REPEAT && m->ne[0] == m->other[0]);
    const size_t safe = safe_unit(m->size);
    if (!whole_rows || m->from[0] != m->item || m->to[0] != m->item) return safe;
    size_t unit = WIDEST;
    while (unit > safe && !all_multiples(m, unit))
        unit = unit == WIDEST ? 4 : unit / 2;
    if (unit <= safe) return safe;
    m->ne[0] = m->ne[0] * m->item / unit;
    m->item = m->from[0] = m->to[0] = unit;
    m->other[0] = m->ne[0];
    return unit;
}

static void set_numbers(uint32_t *out, const uint64_t *values) {
    for (int d = 0; d < GGML_MAX_DIMS; ++d)
        out[d] = (uint32_t)values[d];
}

void vk_encode_move(struct vk_plan *plan, const struct ggml_tensor *node,
                    const struct ggml_tensor *source, struct vk_move move) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_copy, node, 1, GROUP);
    if (!d) return;
    d->operands[1].tensor = source;
    if (move.mode == VK_MOVE_PLACE) merge_dims(&move);
    const size_t unit = widen_items(&move);
    const uint32_t run = vk_plan_features(plan)->cpu ? 4 : 1;
    vk_dispatch_spec(d, move.mode);
    vk_dispatch_spec(d, (uint32_t)move.item);
    vk_dispatch_spec(d, (uint32_t)unit);
    vk_dispatch_spec(d, (uint32_t)safe_unit(move.size));
    vk_dispatch_spec(d, run);
    const uint64_t from[] = {move.from[0], move.from[1], move.from[2], move.from[3]};
    const uint64_t to[] = {move.to[0], move.to[1], move.to[2], move.to[3]};
    set_numbers(&d->numbers[0], move.ne);
    set_numbers(&d->numbers[4], from);
    set_numbers(&d->numbers[8], to);
    if (move.mode == VK_MOVE_PLACE)
        d->numbers[12] = (uint32_t)move.offset;
    else
        set_numbers(&d->numbers[12], move.other);
    const uint64_t rows = move.ne[1] * move.ne[2] * move.ne[3];
    vk_dispatch_groups(plan, d, vk_groups_of(vk_groups_of(move.ne[0], run) * rows, GROUP));
}
