// SPDX-License-Identifier: MIT
// Transfers that are queued: what comes from the host is copied into staging memory at once, and
// from there by the stream; what goes to the host waits in staging memory until somebody waits for
// the stream, or for an event behind it.
#ifndef METAL_QUEUE_TRANSFER_H
#define METAL_QUEUE_TRANSFER_H

#include "queue/stream.h"

// Entries of streams.
int32_t metal_transfer_set(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                           size_t offset, size_t size, size_t n, size_t stride_tensor,
                           size_t stride_data);
int32_t metal_transfer_get(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                           size_t offset, size_t size, size_t n, size_t stride_tensor,
                           size_t stride_data);
int32_t metal_transfer_copy(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                            const struct ggml_tensor *src, struct ggml_tensor *dst);

#endif
