// SPDX-License-Identifier: MIT
// Copies that the device does: between two of Metal's buffers, in a command buffer.
#ifndef METAL_MEMORY_COPY_H
#define METAL_MEMORY_COPY_H

#include "device/context.h"

// Where bytes are.
struct metal_spot {
    mtl_id handle;
    size_t offset;    // in the buffer of Metal's
    uint64_t address; // the device's
    size_t stride;    // between the beginnings of pieces
};

// n pieces of `size` bytes each; what is read and what is written don't overlap.
struct metal_copy {
    struct metal_spot from, to;
    size_t size, n;
};

// All of a buffer of Metal's from its beginning on. [any-thread]
struct metal_spot metal_spot_of(mtl_id buffer, size_t stride);
// Encodes the copy, by an encoder of its own, into the command buffer. A pool is open. [any-thread]
enum ggml_host_status metal_copy_encode(struct metal_context *context, mtl_id commands,
                                        const struct metal_copy *copy);
// Waits for the copy, which needs nothing that is queued on streams. [any-thread]
enum ggml_host_status metal_copy_now(struct metal_context *context, const struct metal_copy *copy);
// The same through staging memory, from or to the host; spot: the device's side. [any-thread]
enum ggml_host_status metal_upload_now(struct metal_context *context, struct metal_spot spot,
                                       const void *host, size_t size);
enum ggml_host_status metal_download_now(struct metal_context *context, struct metal_spot spot,
                                         void *host, size_t size);
enum ggml_host_status metal_fill_now(struct metal_context *context, struct metal_spot spot,
                                     uint8_t value, size_t size);

#endif
