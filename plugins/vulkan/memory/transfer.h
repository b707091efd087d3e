// SPDX-License-Identifier: MIT
// Moving bytes while the caller waits. Memory that the host can't reach is filled and read through
// a staging buffer, of which a context has one.
#ifndef GVK_TRANSFER_H
#define GVK_TRANSFER_H

#include "memory/buffer.h"

// n pieces of `size` bytes, with strides in bytes on either side.
struct gvk_move {
    struct gvk_buffer *buffer;
    uint64_t offset;
    char *host; // only read when it is the source
    size_t size, n;
    size_t stride_buffer, stride_host;
};

// Where a move has arrived; starts as zeros.
struct gvk_progress {
    size_t piece; // complete ones
    size_t done;  // bytes of the next one
};

// The next bytes of a move that lie together on both sides, at most `most`.
struct gvk_chunk {
    uint64_t offset;
    char *host;
    size_t size; // 0: the move is complete
};
struct gvk_chunk gvk_move_next(const struct gvk_move *move, struct gvk_progress *progress,
                               size_t most);

struct gvk_transfer *gvk_transfer_new(struct gvk_context *context);
void gvk_transfer_free(struct gvk_transfer *transfer);

// These return whether it worked, after telling why not. [any-thread]
bool gvk_transfer_set(const struct gvk_move *move);
bool gvk_transfer_get(const struct gvk_move *move);
bool gvk_transfer_fill(struct gvk_buffer *buffer, uint64_t offset, uint64_t size, uint8_t value);
// Inside one context, of ranges that don't overlap.
bool gvk_transfer_copy(struct gvk_buffer *src, uint64_t src_offset, struct gvk_buffer *dst,
                       uint64_t dst_offset, uint64_t size);

#endif
