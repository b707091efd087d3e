// SPDX-License-Identifier: MIT
// Entries of the tables of buffers and streams that follow from others.
#ifndef GPU_TABLES_H
#define GPU_TABLES_H

#include "ggml-impl.h"
#include "ggml-plugin.h"

// The buffer that the tensor lies in; a view without one has that of what it is a view of. NULL:
// none yet. [any-thread]
ggml_backend_buffer_t gpu_buffer_of(const struct ggml_tensor *tensor);

// One piece through set_tensor_2d and get_tensor_2d of the same table.
int32_t gpu_buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size);
int32_t gpu_buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size);
// The same of a stream's table.
int32_t gpu_stream_set(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size);
int32_t gpu_stream_get(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size);

// Entries of a buffer whose base is an address that the host reads and writes.
int32_t gpu_host_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value,
                        size_t offset, size_t size);
int32_t gpu_host_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data,
                     size_t offset, size_t size);
int32_t gpu_host_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data,
                     size_t offset, size_t size);
int32_t gpu_host_clear(ggml_backend_buffer_t buffer, uint8_t value);

#endif
