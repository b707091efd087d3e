// SPDX-License-Identifier: MIT
// How a tensor is split among devices: operations on that state.
#include "meta/meta.h"

// One segment without shares: mirrored, partial, or unknown.
meta_state meta_state_plain(enum ggml_backend_meta_split_axis axis) {
    meta_state state = {.axis = axis, .n_segments = 1};
    state.nr[0] = 1;
    return state;
}

// A split along one axis with the devices' shares of its extent.
meta_state meta_state_axis(int axis, const int64_t *shares, size_t n) {
    meta_state state = meta_state_plain((enum ggml_backend_meta_split_axis)axis);
    for (size_t j = 0; j < n; ++j)
        state.ne[j] = shares[j];
    return state;
}

// Elements of the axis on device j, over all segments.
int64_t meta_share(const meta_state *state, size_t n, size_t j) {
    int64_t share = 0;
    for (size_t s = 0; s < state->n_segments; ++s)
        share += state->ne[s * n + j] * state->nr[s];
    return share;
}

// States may differ in representation and mean the same split; such a pair counts as different,
// which only costs a copy.
bool meta_state_equal(const meta_state *a, const meta_state *b, size_t n) {
    if (a->axis != b->axis) return false;
    if (!meta_is_axis(a)) return true;
    if (a->n_segments != b->n_segments) return false;
    for (size_t s = 0; s < a->n_segments; ++s) {
        if (a->nr[s] != b->nr[s]) return false;
        for (size_t j = 0; j < n; ++j) {
            if (a->ne[s * n + j] != b->ne[s * n + j]) return false;
        }
    }
    return true;
}

bool meta_is_plain_cut(const meta_state *state) {
    return meta_is_axis(state) && state->n_segments == 1 && state->nr[0] == 1;
}

// Elements of all segments together; -1 for shares that are negative, too large, or no whole
// blocks.
static int64_t extent(const meta_state *state, int64_t limit, int64_t block, size_t n) {
    int64_t total = 0;
    for (size_t s = 0; s < state->n_segments; ++s) {
        for (size_t j = 0; j < n; ++j) {
            const int64_t ne = state->ne[s * n + j];
            if (ne < 0 || ne > limit || ne % block != 0) return -1;
            if (state->nr[s] > 0 && ne > (limit - total) / state->nr[s]) return -1;
            total += ne * state->nr[s];
        }
    }
    return total;
}

// Whether the shares add up to the extent, in whole blocks along dimension 0.
bool meta_state_fits(const meta_state *state, const struct ggml_tensor *tensor, size_t n) {
    if (state->axis == GGML_BACKEND_SPLIT_AXIS_MIRRORED ||
        state->axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL) {
        return true;
    }
    if (!meta_is_axis(state) || state->n_segments < 1 || state->n_segments > META_MAX_SEGMENTS) {
        return false;
    }
    const int64_t block = (int)state->axis == 0 ? ggml_blck_size(tensor->type) : 1;
    const int64_t limit = tensor->ne[state->axis];
    return extent(state, limit, block, n) == limit;
}

const char *ggml_backend_meta_split_axis_name(enum ggml_backend_meta_split_axis split_axis) {
    static const char *const axes[] = {"0", "1", "2", "3"};
    switch ((int)split_axis) {
    case GGML_BACKEND_SPLIT_AXIS_0:
    case GGML_BACKEND_SPLIT_AXIS_1:
    case GGML_BACKEND_SPLIT_AXIS_2:
    case GGML_BACKEND_SPLIT_AXIS_3: return axes[split_axis];
    case GGML_BACKEND_SPLIT_AXIS_MIRRORED: return "MIRRORED";
    case GGML_BACKEND_SPLIT_AXIS_PARTIAL: return "PARTIAL";
    case GGML_BACKEND_SPLIT_AXIS_NONE: return "NONE";
    default: return "UNKNOWN";
    }
}
