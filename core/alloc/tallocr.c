// SPDX-License-Identifier: MIT
// ggml_tallocr: places tensors one after the other in a buffer.
#include "base/status.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"

// Begins at the first aligned address of the buffer, whose base need not be aligned.
struct ggml_tallocr ggml_tallocr_new(ggml_backend_buffer_t buffer) {
    struct ggml_tallocr talloc = {0};
    if (!buffer) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_tallocr_new: the buffer is NULL");
        return talloc;
    }
    talloc.buffer = buffer;
    talloc.base = ggml_backend_buffer_get_base(buffer);
    talloc.alignment = ggml_backend_buffer_get_alignment(buffer);
    talloc.offset = (size_t)(0 - (uintptr_t)talloc.base) & (talloc.alignment - 1);
    return talloc;
}

enum ggml_status ggml_tallocr_alloc(struct ggml_tallocr *talloc, struct ggml_tensor *tensor) {
    if (!talloc || !talloc->buffer || !tensor) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_tallocr_alloc: the buffer or tensor is NULL");
        return GGML_STATUS_FAILED;
    }
    const size_t needed = ggml_backend_buffer_get_alloc_size(talloc->buffer, tensor);
    const size_t size = ggml_backend_buffer_get_size(talloc->buffer);
    const size_t left = size > talloc->offset ? size - talloc->offset : 0;
    if (needed > left) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY,
                  "ggml_tallocr_alloc: '%s' needs %zu bytes; %zu of the %zu bytes of %s are left",
                  tensor->name, needed, left, size, ggml_backend_buffer_name(talloc->buffer));
        return GGML_STATUS_ALLOC_FAILED;
    }
    void *address = (void *)((uintptr_t)talloc->base + talloc->offset);
    const enum ggml_status status = ggml_backend_tensor_alloc(talloc->buffer, tensor, address);
    if (status == GGML_STATUS_SUCCESS) talloc->offset += GGML_PAD(needed, talloc->alignment);
    return status;
}
