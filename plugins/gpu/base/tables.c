// SPDX-License-Identifier: MIT
// Transfers of one piece are those of many with a count of one, and memory of the host is copied by
// memcpy(), whichever GPU it is for.
#include "gpu/base/tables.h"

#include <string.h>

ggml_backend_buffer_t gpu_buffer_of(const struct ggml_tensor *tensor) {
    if (tensor->buffer) return tensor->buffer;
    return tensor->view_src ? tensor->view_src->buffer : NULL;
}

// --- one piece -----------------------------------------------------------------------------------

int32_t gpu_buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size) {
    return buffer->table->set_tensor_2d(buffer, tensor, data, offset, size, 1, 0, 0);
}

int32_t gpu_buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size) {
    return buffer->table->get_tensor_2d(buffer, tensor, data, offset, size, 1, 0, 0);
}

int32_t gpu_stream_set(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size) {
    return stream->table->set_tensor_2d_async(stream, tensor, data, offset, size, 1, 0, 0);
}

int32_t gpu_stream_get(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size) {
    return stream->table->get_tensor_2d_async(stream, tensor, data, offset, size, 1, 0, 0);
}

// --- memory of the host --------------------------------------------------------------------------

int32_t gpu_host_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value,
                        size_t offset, size_t size) {
    (void)buffer;
    memset((char *)tensor->data + offset, value, size);
    return GGML_HOST_OK;
}

int32_t gpu_host_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data,
                     size_t offset, size_t size) {
    (void)buffer;
    memcpy((char *)tensor->data + offset, data, size);
    return GGML_HOST_OK;
}

int32_t gpu_host_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data,
                     size_t offset, size_t size) {
    (void)buffer;
    memcpy(data, (const char *)tensor->data + offset, size);
    return GGML_HOST_OK;
}

// As many bytes as the application asked for: what an allocation has beyond them is not the
// application's.
int32_t gpu_host_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(buffer->table->get_base(buffer), value, buffer->size);
    return GGML_HOST_OK;
}
