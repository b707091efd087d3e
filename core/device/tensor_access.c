// SPDX-License-Identifier: MIT
// Checks of a transfer before a plugin is called: the tensor has memory, and the pieces are within
// it and begin and end at whole units of its type.
#include "device/tensor_access.h"

#include <string.h>

#include "ggml-impl.h"

enum { FILL_BYTES = 4096 };

// A 2-D transfer of n pieces covers (n - 1) strides and one piece.
// Bytes from the first piece's start to the last one's end; false on overflow.
static bool pieces_span(size_t size, size_t n_copies, size_t stride, size_t *out_span) {
    *out_span = 0;
    if (stride != 0 && n_copies - 1 > (SIZE_MAX - size) / stride) return false;
    *out_span = (n_copies - 1) * stride + size;
    return true;
}

// Whether the tensor is usable and lies within its buffer; false after the error was set.
static bool has_memory(const char *function, const struct ggml_tensor *tensor) {
    if (tensor->flags & GGML_TENSOR_FLAG_ERROR) {
        const char *reason = tensor->extra ? tensor->extra : "";
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: tensor '%s' is in error: %s", function,
                  tensor->name, reason);
        return false;
    }
    if (!device_is_inside(tensor)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "%s: '%s' is a view that reaches beyond the end of its tensor", function,
                  tensor->name);
        return false;
    }
    struct device_host_range range = {0};
    if (device_tensor_buffer(tensor) && tensor->data) {
        if (device_is_in_buffer(tensor, &range)) return true;
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: '%s' reaches beyond its buffer", function,
                  tensor->name);
        return false;
    }
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: tensor '%s' has no %s: allocate it first", function,
              tensor->name, tensor->data ? "buffer" : "data");
    return false;
}

// Bytes that a transfer must begin and end at, at least 1; SIZE_MAX: only the whole tensor.
size_t tensor_access_unit(const struct ggml_tensor *tensor) {
    const struct ggml_backend_buffer_type *buft = device_tensor_buffer(tensor)->buft;
    const size_t unit =
        buft->table->get_access_unit
            ? buft->table->get_access_unit(device_tensor_buffer(tensor)->buft, tensor)
            : 1;
    return unit > 0 ? unit : 1;
}

// A transfer of the whole tensor is always allowed.
static bool is_in_units(const struct ggml_tensor *tensor, const struct tensor_pieces *pieces) {
    const size_t unit = tensor_access_unit(tensor);
    if (unit == 1) return true;
    if (pieces->n_copies == 1 && pieces->offset == 0 && pieces->size == ggml_nbytes(tensor))
        return true;
    return unit != SIZE_MAX && pieces->offset % unit == 0 && pieces->size % unit == 0 &&
           (pieces->n_copies == 1 || pieces->stride_tensor % unit == 0);
}

ggml_backend_buffer_t tensor_access_buffer(const char *function, const struct ggml_tensor *tensor,
                                           const void *data, const struct tensor_pieces *pieces) {
    if (!device_require_arg(tensor, function, "tensor")) return NULL;
    if (pieces->size == 0 || pieces->n_copies == 0) return NULL;
    if (!device_require_arg(data, function, "host memory") || !has_memory(function, tensor))
        return NULL;
    ggml_backend_buffer_t buffer = device_tensor_buffer(tensor);
    const size_t bytes = ggml_nbytes(tensor);
    size_t span;
    size_t span_data;
    const size_t n = pieces->n_copies;
    if (!pieces_span(pieces->size, n, pieces->stride_tensor, &span) || span > bytes ||
        pieces->offset > bytes - span ||
        !pieces_span(pieces->size, n, pieces->stride_data, &span_data)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "%s: %zu x %zu bytes at %zu do not fit tensor '%s' of %zu bytes in %s", function,
                  n, pieces->size, pieces->offset, tensor->name, bytes,
                  device_buft_label(buffer->buft));
        return NULL;
    }
    if (is_in_units(tensor, pieces)) return buffer;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "%s: in %s the %zu bytes of '%s' can't be reached in parts: transfer it as a whole",
              function, device_buft_label(buffer->buft), bytes, tensor->name);
    return NULL;
}

// Whether an optional entry has handled the call, even by failing. UNSUPPORTED without a message
// means that it did nothing; the caller then uses the required entries.
static bool was_handled(const char *function, const char *label, unsigned long errors_before,
                        int32_t status) {
    if (status == GGML_HOST_UNSUPPORTED && ggml_fail_count() == errors_before) return false;
    device_check_status(status, errors_before, function, label);
    return true;
}

// device_offers() for a buffer. The label is only looked up for a message: it calls the plugin.
static bool buffer_offers(ggml_backend_buffer_t buffer, bool present, const char *function,
                          const char *entry) {
    return present || device_offers(false, function, device_buft_label(buffer->buft), entry);
}

void ggml_backend_tensor_set(struct ggml_tensor *tensor, const void *data, size_t offset,
                             size_t size) {
    const struct tensor_pieces pieces = {offset, size, 1, 0, 0};
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (!buffer_offers(buffer, buffer->table->set_tensor != NULL, __func__, "set_tensor")) return;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = buffer->table->set_tensor(buffer, tensor, data, offset, size);
    if (status != GGML_HOST_OK)
        device_check_status(status, errors_before, __func__, device_buft_label(buffer->buft));
}

void ggml_backend_tensor_get(const struct ggml_tensor *tensor, void *data, size_t offset,
                             size_t size) {
    const struct tensor_pieces pieces = {offset, size, 1, 0, 0};
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    if (!buffer_offers(buffer, buffer->table->get_tensor != NULL, __func__, "get_tensor")) return;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = buffer->table->get_tensor(buffer, tensor, data, offset, size);
    if (status != GGML_HOST_OK)
        device_check_status(status, errors_before, __func__, device_buft_label(buffer->buft));
}

// n_copies pieces with a stride on each side. The plugin's own entry is tried first, then one
// transfer per piece; the first failure ends it.
void ggml_backend_tensor_set_2d(struct ggml_tensor *tensor, const void *data, size_t offset,
                                size_t size, size_t n_copies, size_t stride_tensor,
                                size_t stride_data) {
    const struct tensor_pieces pieces = {offset, size, n_copies, stride_tensor, stride_data};
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    const char *label = device_buft_label(buffer->buft);
    const unsigned long errors_before = ggml_fail_count();
    if (n_copies > 1 && buffer->table->set_tensor_2d) {
        const int32_t status = buffer->table->set_tensor_2d(buffer, tensor, data, offset, size,
                                                            n_copies, stride_tensor, stride_data);
        if (was_handled(__func__, label, errors_before, status)) return;
    }
    if (!device_offers(buffer->table->set_tensor != NULL, __func__, label, "set_tensor")) return;
    for (size_t i = 0; i < n_copies && ggml_fail_count() == errors_before; ++i) {
        const int32_t status = buffer->table->set_tensor(
            buffer, tensor, (const char *)data + i * stride_data, offset + i * stride_tensor, size);
        device_check_status(status, errors_before, __func__, label);
    }
}

void ggml_backend_tensor_get_2d(const struct ggml_tensor *tensor, void *data, size_t offset,
                                size_t size, size_t n_copies, size_t stride_tensor,
                                size_t stride_data) {
    const struct tensor_pieces pieces = {offset, size, n_copies, stride_tensor, stride_data};
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, data, &pieces);
    if (!buffer) return;
    const char *label = device_buft_label(buffer->buft);
    const unsigned long errors_before = ggml_fail_count();
    if (n_copies > 1 && buffer->table->get_tensor_2d) {
        const int32_t status = buffer->table->get_tensor_2d(buffer, tensor, data, offset, size,
                                                            n_copies, stride_tensor, stride_data);
        if (was_handled(__func__, label, errors_before, status)) return;
    }
    if (!device_offers(buffer->table->get_tensor != NULL, __func__, label, "get_tensor")) return;
    for (size_t i = 0; i < n_copies && ggml_fail_count() == errors_before; ++i) {
        const int32_t status = buffer->table->get_tensor(
            buffer, tensor, (char *)data + i * stride_data, offset + i * stride_tensor, size);
        device_check_status(status, errors_before, __func__, label);
    }
}

// Fills a range through set_tensor in pieces of at most FILL_BYTES, for buffers without
// memset_tensor.
static void fill_in_pieces(const char *function, ggml_backend_buffer_t buffer,
                           struct ggml_tensor *tensor, uint8_t value, size_t offset, size_t size) {
    uint8_t piece[FILL_BYTES];
    int32_t status = GGML_HOST_OK;
    const unsigned long errors_before = ggml_fail_count();
    memset(piece, value, sizeof(piece));
    for (size_t done = 0; done < size && status == GGML_HOST_OK;) {
        const size_t n = MIN(sizeof(piece), size - done);
        status = buffer->table->set_tensor(buffer, tensor, piece, offset + done, n);
        done += n;
    }
    device_check_status(status, errors_before, function, device_buft_label(buffer->buft));
}

void ggml_backend_tensor_memset(struct ggml_tensor *tensor, uint8_t value, size_t offset,
                                size_t size) {
    const struct tensor_pieces pieces = {offset, size, 1, 0, 0};
    ggml_backend_buffer_t buffer = tensor_access_buffer(__func__, tensor, &value, &pieces);
    if (!buffer) return;
    const char *label = device_buft_label(buffer->buft);
    if (buffer->table->memset_tensor) {
        const unsigned long errors_before = ggml_fail_count();
        const int32_t status = buffer->table->memset_tensor(buffer, tensor, value, offset, size);
        if (was_handled(__func__, label, errors_before, status)) return;
    }
    // A type whose bytes can't be accessed singly can't be filled in pieces.
    const bool in_pieces = buffer->table->set_tensor && tensor_access_unit(tensor) == 1;
    if (!device_offers(in_pieces, __func__, label, "memset_tensor")) return;
    fill_in_pieces(__func__, buffer, tensor, value, offset, size);
}
