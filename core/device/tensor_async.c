// SPDX-License-Identifier: MIT
// Transfers queued on a stream. Where the stream can't queue one, it is synchronised and the
// transfer is made at once, which keeps the order.
#include "base/thread_guard.h"
#include "device/tensor_access.h"

// A stream queues transfers of its own device's memory only; it is never shown another's.
static bool owns(ggml_backend_t backend, ggml_backend_buffer_t buffer) {
    return buffer->buft && buffer->buft->device == backend->device;
}

// Whether the stream has taken the transfer on, be it to fail: otherwise it did nothing.
static bool answered(const char *function, ggml_backend_t backend, unsigned long errors_before,
                     int32_t status) {
    if (status == GGML_HOST_UNSUPPORTED && ggml_fail_count() == errors_before) return false;
    device_check_status(status, errors_before, function, device_stream_label(backend));
    return true;
}

// One call for all pieces, or one for each. If the stream stops taking them half-way, the caller
// transfers all of them again, which is harmless.
static bool queue_set(const char *function, ggml_backend_t backend, struct ggml_tensor *tensor,
                      const void *data, const struct tensor_pieces *p) {
    const struct ggml_stream_table *table = backend->table;
    const unsigned long errors_before = ggml_fail_count();
    if (p->n_copies > 1 && table->set_tensor_2d_async &&
        answered(function, backend, errors_before,
                 table->set_tensor_2d_async(backend, tensor, data, p->offset, p->size, p->n_copies,
                                            p->stride_tensor, p->stride_data))) {
        return true;
    }
    if (!table->set_tensor_async) return false;
    for (size_t i = 0; i < p->n_copies && ggml_fail_count() == errors_before; ++i) {
        const int32_t status =
            table->set_tensor_async(backend, tensor, (const char *)data + i * p->stride_data,
                                    p->offset + i * p->stride_tensor, p->size);
        if (!answered(function, backend, errors_before, status)) return false;
    }
    return true;
}

static bool queue_get(const char *function, ggml_backend_t backend,
                      const struct ggml_tensor *tensor, void *data, const struct tensor_pieces *p) {
    const struct ggml_stream_table *table = backend->table;
    const unsigned long errors_before = ggml_fail_count();
    if (p->n_copies > 1 && table->get_tensor_2d_async &&
        answered(function, backend, errors_before,
                 table->get_tensor_2d_async(backend, tensor, data, p->offset, p->size, p->n_copies,
                                            p->stride_tensor, p->stride_data))) {
        return true;
    }
    if (!table->get_tensor_async) return false;
    for (size_t i = 0; i < p->n_copies && ggml_fail_count() == errors_before; ++i) {
        const int32_t status =
            table->get_tensor_async(backend, tensor, (char *)data + i * p->stride_data,
                                    p->offset + i * p->stride_tensor, p->size);
        if (!answered(function, backend, errors_before, status)) return false;
    }
    return true;
}

void ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                   const void *data, size_t offset, size_t size) {
    THREAD_GUARD_VOID(backend);
    const struct tensor_pieces pieces = {offset, size, 1, 0, 0};
    if (!device_require_arg(backend, __func__, "stream")) return;
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (owns(backend, buffer) && queue_set(__func__, backend, tensor, data, &pieces)) return;
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_set(tensor, data, offset, size);
}

void ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                   void *data, size_t offset, size_t size) {
    THREAD_GUARD_VOID(backend);
    const struct tensor_pieces pieces = {offset, size, 1, 0, 0};
    if (!device_require_arg(backend, __func__, "stream")) return;
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (owns(backend, buffer) && queue_get(__func__, backend, tensor, data, &pieces)) return;
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_get(tensor, data, offset, size);
}

void ggml_backend_tensor_set_2d_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                      const void *data, size_t offset, size_t size, size_t n_copies,
                                      size_t stride_tensor, size_t stride_data) {
    THREAD_GUARD_VOID(backend);
    const struct tensor_pieces pieces = {offset, size, n_copies, stride_tensor, stride_data};
    if (!device_require_arg(backend, __func__, "stream")) return;
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (owns(backend, buffer) && queue_set(__func__, backend, tensor, data, &pieces)) return;
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_set_2d(tensor, data, offset, size, n_copies, stride_tensor, stride_data);
}

void ggml_backend_tensor_get_2d_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                      void *data, size_t offset, size_t size, size_t n_copies,
                                      size_t stride_tensor, size_t stride_data) {
    THREAD_GUARD_VOID(backend);
    const struct tensor_pieces pieces = {offset, size, n_copies, stride_tensor, stride_data};
    if (!device_require_arg(backend, __func__, "stream")) return;
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (owns(backend, buffer) && queue_get(__func__, backend, tensor, data, &pieces)) return;
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_get_2d(tensor, data, offset, size, n_copies, stride_tensor, stride_data);
}
