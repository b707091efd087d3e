// SPDX-License-Identifier: MIT
// Moves of elements or blocks between two layouts, by shaders/copy.comp.
#ifndef VK_MOVE_H
#define VK_MOVE_H

#include "plan/kernel.h"

// As in shaders/copy.comp.
enum vk_move_mode { VK_MOVE_PLACE, VK_MOVE_REPEAT, VK_MOVE_RESHAPE };

// Items of `item` bytes with extents ne, and their strides in bytes in the source and the result.
struct vk_move {
    enum vk_move_mode mode;
    size_t size; // of an element or block, before items are widened
    size_t item;
    uint64_t ne[GGML_MAX_DIMS];
    size_t from[GGML_MAX_DIMS], to[GGML_MAX_DIMS];
    uint64_t other[GGML_MAX_DIMS]; // REPEAT: extents of the source; RESHAPE: of the result
    size_t offset;                 // PLACE: bytes into the result
};

// All blocks of `t`, to places with other strides.
struct vk_move vk_move_of(const struct ggml_tensor *t, const size_t to[GGML_MAX_DIMS],
                          size_t offset);
// Appends the dispatch from `source` to the node.
void vk_encode_move(struct vk_plan *plan, const struct ggml_tensor *node,
                    const struct ggml_tensor *source, struct vk_move move);

#endif
