// SPDX-License-Identifier: MIT
// Moving bytes while the caller waits. Memory that the host can't reach is filled and read through
// a staging buffer, of which a context has one.
#ifndef VK_TRANSFER_H
#define VK_TRANSFER_H

#include "memory/buffer.h"

// n pieces of `size` bytes, with strides in bytes on either side.
struct vk_move {
    struct vk_buffer *buffer;
    uint64_t offset;
    char *host; // only read when it is the source
    size_t size, n;
    size_t stride_buffer, stride_host;
};

// Where a move has arrived; starts as zeros.
struct vk_progress {
    size_t piece; // complete ones
    size_t done;  // bytes of the next one
};

// The next bytes of a move that lie together on both sides, at most `most`.
struct vk_chunk {
    uint64_t offset;
    char *host;
    size_t size; // 0: the move is complete
};
struct vk_chunk vk_move_next(const struct vk_move *move, struct vk_progress *progress, size_t most);

struct vk_transfer *vk_transfer_new(struct vk_context *context);
void vk_transfer_free(struct vk_transfer *transfer);

// These answer whether it worked, after telling why not. [any-thread]
bool vk_transfer_set(const struct vk_move *move);
bool vk_transfer_get(const struct vk_move *move);
bool vk_transfer_fill(struct vk_buffer *buffer, uint64_t offset, uint64_t size, uint8_t value);
// Inside one context, of ranges that don't overlap.
bool vk_transfer_copy(struct vk_buffer *src, uint64_t src_offset, struct vk_buffer *dst,
                      uint64_t dst_offset, uint64_t size);

#endif
