// SPDX-License-Identifier: MIT
// Moves of elements or blocks between two layouts, by shaders/copy.comp.
#ifndef GVK_MOVE_H
#define GVK_MOVE_H

#include "plan/kernel.h"

// As in shaders/copy.comp.
enum gvk_move_mode { GVK_MOVE_PLACE, GVK_MOVE_REPEAT, GVK_MOVE_RESHAPE };

// Items of `item` bytes with extents ne, and their strides in bytes in the source and the result.
struct gvk_move {
    enum gvk_move_mode mode;
    size_t size; // of an element or block, before items are widened
    size_t item;
    uint64_t ne[GGML_MAX_DIMS];
    size_t from[GGML_MAX_DIMS], to[GGML_MAX_DIMS];
    uint64_t other[GGML_MAX_DIMS]; // REPEAT: extents of the source; RESHAPE: of the result
    size_t offset;                 // PLACE: bytes into the result
};

// All blocks of `t`, to places with other strides.
struct gvk_move gvk_move_of(const struct ggml_tensor *t, const size_t to[GGML_MAX_DIMS],
                            size_t offset);
// Appends the dispatch from `source` to the node.
void gvk_encode_move(struct gvk_plan *plan, const struct ggml_tensor *node,
                     const struct ggml_tensor *source, struct gvk_move move);

#endif
