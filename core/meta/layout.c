// SPDX-License-Identifier: MIT
// Views of split memory. An address in a root that is split along axis a is
//     outer * row + coordinate * unit + inner
// with unit = nb[a] (of a block for axis 0) and row = nb[a + 1]. Only the coordinate tells the
// devices apart, so a view is split well if one of its dimensions runs over the coordinate in steps
// that no device boundary cuts.
#include "meta/meta.h"

// A root as bytes; extents along dimension 0 count blocks.
struct frame {
    size_t unit, row;
    int64_t block; // elements of one coordinate
};

// How a view walks over a frame.
struct walk {
    int axis;         // dimension that runs over the coordinate
    int64_t start;    // first coordinate covered, whole steps
    int64_t length;   // coordinates covered
    int64_t up, down; // extent along the axis = coordinates * up / down
    size_t outer;     // rows before the view
    size_t inside;    // bytes from the start of the first step to the view
};

// Offsets are relative to the root; an owner begins there whatever its view_offs holds.
struct meta_layout meta_layout_of(const struct ggml_tensor *tensor) {
    struct meta_layout layout = {.type = tensor->type, .offset = tensor->view_offs};
    memcpy(layout.ne, tensor->ne, sizeof(layout.ne));
    memcpy(layout.nb, tensor->nb, sizeof(layout.nb));
    if (!tensor->view_src) layout.offset = 0;
    return layout;
}

// Without gaps, in the order of extents.
struct meta_layout meta_layout_packed(enum ggml_type type, const int64_t *ne) {
    struct meta_layout layout = {.type = type};
    memcpy(layout.ne, ne, sizeof(layout.ne));
    layout.nb[0] = ggml_type_size(type);
    layout.nb[1] = layout.nb[0] * (size_t)(ne[0] / ggml_blck_size(type));
    layout.nb[2] = layout.nb[1] * (size_t)ne[1];
    layout.nb[3] = layout.nb[2] * (size_t)ne[2];
    return layout;
}

// The frame in which coordinates along `axis` are counted.
static struct frame frame_of(const struct meta_layout *root, int axis) {
    struct frame frame = {.unit = root->nb[axis], .block = 1};
    frame.row =
        axis + 1 < GGML_MAX_DIMS ? root->nb[axis + 1] : root->nb[axis] * (size_t)root->ne[axis];
    if (axis == 0) frame.block = ggml_blck_size(root->type);
    return frame;
}

// Extents in units that have an address: blocks along dimension 0, else elements.
static int64_t steps(const struct meta_layout *view, int d) {
    return d == 0 ? view->ne[0] / ggml_blck_size(view->type) : view->ne[d];
}

// Whether steps along dimension d of the view leave one coordinate of the split axis without
// leaving the row, that is, whether it runs over the split.
static bool crosses(const struct meta_layout *view, const struct frame *frame, int d) {
    const int64_t n = steps(view, d);
    if (n <= 1 || view->nb[d] == 0 || view->nb[d] % frame->row == 0) return false;
    return (size_t)(n - 1) * view->nb[d] >= frame->unit;
}

// The view's dimension that runs over the split axis: of those that cross, the one with the widest
// steps. The others must stay within one of its steps, which walk_wide() and walk_narrow() check.
static int find_axis(const struct meta_layout *view, const struct frame *frame) {
    int axis = -1;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (crosses(view, frame, d) && (axis < 0 || view->nb[d] > view->nb[axis])) axis = d;
    }
    return axis;
}

// Bytes that the view's other dimensions reach beyond the first byte of a step.
static size_t reach(const struct meta_layout *view, const struct frame *frame, int axis) {
    size_t bytes = 0;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t n = steps(view, d);
        if (d != axis && n > 1 && view->nb[d] % frame->row != 0)
            bytes += (size_t)(n - 1) * view->nb[d];
    }
    return bytes;
}

// Case 1: each step of the view covers one coordinate or several.
static bool walk_wide(const struct meta_layout *view, const struct frame *frame, size_t rest,
                      struct walk *walk) {
    const size_t step = view->nb[walk->axis];
    if (step % frame->unit != 0) return false;
    walk->inside = rest % step;
    walk->start = (int64_t)((rest - walk->inside) / frame->unit);
    walk->down = (int64_t)(step / frame->unit);
    walk->length = steps(view, walk->axis) * walk->down;
    return walk->inside + reach(view, frame, walk->axis) < step;
}

// Case 2: several steps of the view make one coordinate, for example where a reshape has divided
// the dimension.
static bool walk_narrow(const struct meta_layout *view, const struct frame *frame, size_t rest,
                        struct walk *walk) {
    const size_t step = view->nb[walk->axis];
    const size_t length = (size_t)steps(view, walk->axis) * step;
    if (frame->unit % step != 0 || rest % frame->unit != 0 || length % frame->unit != 0)
        return false;
    if (reach(view, frame, walk->axis) >= step) return false;
    walk->start = (int64_t)(rest / frame->unit);
    walk->up = (int64_t)(frame->unit / step);
    walk->length = (int64_t)(length / frame->unit);
    return true;
}

// Describes the view as a walk over the split axis; false if it mixes coordinates in a way that no
// state describes.
static bool find_walk(const struct meta_layout *root, int root_axis, const struct meta_layout *view,
                      struct walk *out_walk) {
    const struct frame frame = frame_of(root, root_axis);
    *out_walk = (struct walk){.axis = -1, .up = 1, .down = 1};
    if (frame.unit == 0 || frame.row == 0) return false;
    const size_t rest = view->offset % frame.row;
    out_walk->outer = view->offset / frame.row;
    out_walk->axis = find_axis(view, &frame);
    if (out_walk->axis < 0) return false;
    const bool found = view->nb[out_walk->axis] >= frame.unit
                           ? walk_wide(view, &frame, rest, out_walk)
                           : walk_narrow(view, &frame, rest, out_walk);
    const int64_t end = (int64_t)(frame.row / frame.unit);
    return found && out_walk->start <= end && out_walk->length <= end - out_walk->start;
}

// Adds `count` repetitions of a root's segment to the view's.
static bool add_segment(const meta_state *root, size_t s, uint32_t count, const struct walk *walk,
                        int64_t block, int64_t view_block, size_t n, meta_state *state) {
    for (size_t j = 0; j < n; ++j) {
        const int64_t scaled = root->ne[s * n + j] / block * walk->up;
        if (scaled % walk->down != 0) return false;
        state->ne[state->n_segments * n + j] = scaled / walk->down * view_block;
    }
    state->nr[state->n_segments++] = count;
    return true;
}

// Coordinates of one repetition of segment s, summed over the devices.
static int64_t period(const meta_state *state, size_t s, int64_t block, size_t n) {
    int64_t sum = 0;
    for (size_t j = 0; j < n; ++j)
        sum += state->ne[s * n + j] / block;
    return sum;
}

// Walks over the segments of the root and takes whole repetitions from the first that the view
// begins with. Views that begin or end within a repetition have no state: a device's part of it
// would not be one range. O(segments x devices).
bool meta_view_state(const struct meta_layout *root, const meta_state *root_state,
                     const struct meta_layout *view, size_t n, meta_state *out_state) {
    struct walk walk;
    const int64_t block = frame_of(root, (int)root_state->axis).block;
    *out_state = meta_state_plain(GGML_BACKEND_SPLIT_AXIS_UNKNOWN);
    if (!find_walk(root, (int)root_state->axis, view, &walk)) return false;
    meta_state state = {.axis = (enum ggml_backend_meta_split_axis)walk.axis};
    const int64_t view_block = walk.axis == 0 ? ggml_blck_size(view->type) : 1;
    int64_t position = 0;
    int64_t left = walk.length;
    for (size_t s = 0; s < root_state->n_segments; ++s) {
        const int64_t size = period(root_state, s, block, n);
        int64_t count = root_state->nr[s];
        if (size == 0) continue;
        int64_t skipped = (walk.start - position + size - 1) / size;
        skipped = MAX(0, MIN(skipped, count));
        position += skipped * size;
        count = MIN(count - skipped, left / size);
        if (count <= 0) {
            position += (root_state->nr[s] - skipped) * size;
            continue;
        }
        if (position != walk.start + (walk.length - left)) return false;
        if (!add_segment(root_state, s, (uint32_t)count, &walk, block, view_block, n, &state)) {
            return false;
        }
        left -= count * size;
        position += (root_state->nr[s] - skipped) * size;
        if (left > 0 && count < root_state->nr[s] - skipped) return false;
    }
    if (left != 0 || state.n_segments == 0) return false;
    *out_state = state;
    return true;
}

// Coordinates that device j has below `start`, at which a repetition begins: where the view begins
// in its slice.
static int64_t local_start(const meta_state *state, int64_t start, int64_t block, size_t n,
                           size_t j) {
    int64_t local = 0;
    for (size_t s = 0; s < state->n_segments && start > 0; ++s) {
        const int64_t size = period(state, s, block, n);
        const int64_t count = size > 0 ? MIN(start / size, (int64_t)state->nr[s]) : 0;
        local += count * (state->ne[s * n + j] / block);
        start -= count * size;
    }
    return local;
}

// Slices are packed, whatever the root's strides: each device has memory of its own for it.
struct meta_layout meta_root_slice(const struct meta_layout *root, const meta_state *state,
                                   size_t n, size_t j) {
    int64_t ne[GGML_MAX_DIMS];
    memcpy(ne, root->ne, sizeof(ne));
    if (meta_is_axis(state)) ne[state->axis] = meta_share(state, n, j);
    return meta_layout_packed(root->type, ne);
}

// The same view in the memory of device j: strides of whole rows shrink with the rows, those within
// a coordinate stay.
struct meta_layout meta_view_slice(const struct meta_layout *root, const meta_state *root_state,
                                   const struct meta_layout *view, const meta_state *view_state,
                                   size_t n, size_t j) {
    struct meta_layout slice = *view;
    struct walk walk;
    if (!meta_is_axis(root_state) || !find_walk(root, (int)root_state->axis, view, &walk))
        return slice;
    const struct frame frame = frame_of(root, (int)root_state->axis);
    const int64_t share = meta_share(root_state, n, j) / frame.block;
    const size_t row = (size_t)share * frame.unit;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if (view->nb[d] >= frame.row && view->nb[d] % frame.row == 0) {
            slice.nb[d] = view->nb[d] / frame.row * row;
        }
    }
    slice.ne[walk.axis] = meta_share(view_state, n, j);
    const int64_t start = local_start(root_state, walk.start, frame.block, n, j);
    slice.offset = walk.outer * row + (size_t)start * frame.unit + walk.inside;
    if (slice.ne[walk.axis] == 0) slice.offset = 0;
    return slice;
}
