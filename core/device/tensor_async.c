// SPDX-License-Identifier: MIT
// Transfers queued on a stream. Where the stream can't queue one, it is synchronised and the
// transfer is made at once, which keeps the order.
#include "base/thread_guard.h"
#include "device/tensor_access.h"

// A stream queues transfers of its own device's memory only; it is never shown another's.
static bool owns(ggml_backend_t backend, ggml_backend_buffer_t buffer) {
    return buffer->buft && buffer->buft->device == backend->device;
}

void ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                   const void *data, size_t offset, size_t size) {
    THREAD_GUARD_VOID(backend);
    const struct tensor_pieces pieces = {offset, size, 1, 0, 0};
    if (!device_given(backend, __func__, "stream")) return;
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (backend->iface.set_tensor_async && owns(backend, buffer)) {
        backend->iface.set_tensor_async(backend, tensor, data, offset, size);
        return;
    }
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_set(tensor, data, offset, size);
}

void ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                   void *data, size_t offset, size_t size) {
    THREAD_GUARD_VOID(backend);
    const struct tensor_pieces pieces = {offset, size, 1, 0, 0};
    if (!device_given(backend, __func__, "stream")) return;
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (backend->iface.get_tensor_async && owns(backend, buffer)) {
        backend->iface.get_tensor_async(backend, tensor, data, offset, size);
        return;
    }
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_get(tensor, data, offset, size);
}

// One piece, or no 2D entry: queue the pieces one by one if the stream can queue at all.
void ggml_backend_tensor_set_2d_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                      const void *data, size_t offset, size_t size, size_t n_copies,
                                      size_t stride_tensor, size_t stride_data) {
    THREAD_GUARD_VOID(backend);
    const struct tensor_pieces pieces = {offset, size, n_copies, stride_tensor, stride_data};
    if (!device_given(backend, __func__, "stream")) return;
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (n_copies > 1 && backend->iface.set_tensor_2d_async && owns(backend, buffer)) {
        backend->iface.set_tensor_2d_async(backend, tensor, data, offset, size, n_copies,
                                           stride_tensor, stride_data);
    } else if (backend->iface.set_tensor_async && owns(backend, buffer)) {
        for (size_t i = 0; i < n_copies; ++i) {
            backend->iface.set_tensor_async(backend, tensor, (const char *)data + i * stride_data,
                                            offset + i * stride_tensor, size);
        }
    } else {
        ggml_backend_synchronize(backend);
        ggml_backend_tensor_set_2d(tensor, data, offset, size, n_copies, stride_tensor,
                                   stride_data);
    }
}

void ggml_backend_tensor_get_2d_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                      void *data, size_t offset, size_t size, size_t n_copies,
                                      size_t stride_tensor, size_t stride_data) {
    THREAD_GUARD_VOID(backend);
    const struct tensor_pieces pieces = {offset, size, n_copies, stride_tensor, stride_data};
    if (!device_given(backend, __func__, "stream")) return;
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (n_copies > 1 && backend->iface.get_tensor_2d_async && owns(backend, buffer)) {
        backend->iface.get_tensor_2d_async(backend, tensor, data, offset, size, n_copies,
                                           stride_tensor, stride_data);
    } else if (backend->iface.get_tensor_async && owns(backend, buffer)) {
        for (size_t i = 0; i < n_copies; ++i) {
            backend->iface.get_tensor_async(backend, tensor, (char *)data + i * stride_data,
                                            offset + i * stride_tensor, size);
        }
    } else {
        ggml_backend_synchronize(backend);
        ggml_backend_tensor_get_2d(tensor, data, offset, size, n_copies, stride_tensor,
                                   stride_data);
    }
}
