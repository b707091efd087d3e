// SPDX-License-Identifier: MIT
// Placing a tensor or a view in a buffer.
#include <stdint.h>

#include "device/check.h"

static enum ggml_status refuse(const char *function, const struct ggml_tensor *tensor,
                               const char *reason) {
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: tensor '%s' %s", function, tensor->name, reason);
    return GGML_STATUS_FAILED;
}

// A device made of several hands out addresses that mean nothing outside it.
static bool fits(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, const void *addr) {
    const uintptr_t base = (uintptr_t)ggml_backend_buffer_get_base(buffer);
    if ((uintptr_t)addr < base) return false;
    if (device_buft_is_meta(buffer->buft)) return true;
    const size_t offset = (uintptr_t)addr - base;
    const size_t size = ggml_backend_buft_get_alloc_size(buffer->buft, tensor);
    return offset <= buffer->size && size <= buffer->size - offset;
}

// Places the tensor; one that init_tensor refuses is left unallocated.
static enum ggml_status place(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                              void *data) {
    tensor->buffer = buffer;
    tensor->data = data;
    const enum ggml_status status = ggml_backend_buffer_init_tensor(buffer, tensor);
    if (status == GGML_STATUS_SUCCESS) return status;
    tensor->buffer = NULL;
    tensor->data = NULL;
    return status;
}

enum ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                                           void *addr) {
    if (!device_require_arg(buffer, __func__, "buffer")) return GGML_STATUS_FAILED;
    if (!device_require_arg(tensor, __func__, "tensor")) return GGML_STATUS_FAILED;
    if (!device_require_arg(addr, __func__, "address")) return GGML_STATUS_FAILED;
    if (tensor->view_src) return refuse(__func__, tensor, "is a view: use ggml_backend_view_init");
    if (tensor->buffer || tensor->data) return refuse(__func__, tensor, "is allocated already");
    if (!fits(buffer, tensor, addr)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "%s: tensor '%s' at %p leaves its buffer of %zu bytes in %s", __func__,
                  tensor->name, addr, buffer->size, device_buft_label(buffer->buft));
        return GGML_STATUS_FAILED;
    }
    return place(buffer, tensor, addr);
}

enum ggml_status ggml_backend_view_init(struct ggml_tensor *tensor) {
    if (!device_require_arg(tensor, __func__, "tensor")) return GGML_STATUS_FAILED;
    const struct ggml_tensor *owner = tensor->view_src;
    if (!owner) return refuse(__func__, tensor, "is not a view");
    if (tensor->buffer) return refuse(__func__, tensor, "is allocated already");
    if (!owner->buffer || !owner->data)
        return refuse(__func__, tensor, "views an unallocated tensor");
    if (tensor->view_offs > owner->buffer->size && !device_buft_is_meta(owner->buffer->buft)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "%s: view '%s' at %zu leaves the buffer of %zu bytes in %s", __func__,
                  tensor->name, tensor->view_offs, owner->buffer->size,
                  device_buft_label(owner->buffer->buft));
        return GGML_STATUS_FAILED;
    }
    return place(owner->buffer, tensor, (char *)owner->data + tensor->view_offs);
}
