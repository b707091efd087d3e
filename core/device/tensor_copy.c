// SPDX-License-Identifier: MIT
// Copies between tensors: within a buffer, by the plugin, or through host memory.
#include "base/mem.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "device/stream.h"
#include "device/tensor_access.h"
#include "ggml-impl.h"

enum {
    STAGING_BYTES = 1 << 20,
    SMALL_STAGING_BYTES = 4096, // on the stack, for when memory runs out
};

// Whether a tensor's bytes lie in a buffer as a whole.
static bool allocated(const char *function, const char *what, const struct ggml_tensor *tensor) {
    if (!device_is_inside(tensor)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "%s: the %s '%s' is a view that reaches beyond the end of its tensor", function,
                  what, tensor->name);
        return false;
    }
    struct device_host_range range = {0};
    if (!device_is_in_buffer(tensor, &range)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: the %s '%s' reaches beyond its buffer", function,
                  what, tensor->name);
        return false;
    }
    if (device_tensor_buffer(tensor) && tensor->data) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the %s '%s' is not allocated", function, what,
              tensor->name);
    return false;
}

// Whether there are bytes to copy; a refusal is recorded.
static bool copyable(const char *function, const struct ggml_tensor *src, struct ggml_tensor *dst) {
    if (!device_require_arg(src, function, "source") ||
        !device_require_arg(dst, function, "destination"))
        return false;
    // Nothing to do is no failure.
    if (src == dst) return false;
    if (!ggml_are_same_layout(src, dst)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: '%s' and '%s' differ in type, shape or strides",
                  function, src->name, dst->name);
        return false;
    }
    if (ggml_nbytes(src) == 0) return false;
    return allocated(function, "source", src) && allocated(function, "destination", dst);
}

// UNSUPPORTED if the buffer can't; any other failure is recorded.
static enum ggml_host_status copy_directly(const char *function, ggml_backend_buffer_t buffer,
                                           const struct ggml_tensor *src, struct ggml_tensor *dst) {
    if (!buffer->table->cpy_tensor) return GGML_HOST_UNSUPPORTED;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = buffer->table->cpy_tensor(buffer, src, dst);
    if (status == GGML_HOST_UNSUPPORTED && ggml_fail_count() == errors_before)
        return GGML_HOST_UNSUPPORTED;
    return device_check_status(status, errors_before, function, device_buft_label(buffer->buft));
}

// Only the direct way: callers that want more have ggml_backend_tensor_copy().
bool ggml_backend_buffer_copy_tensor(const struct ggml_tensor *src, struct ggml_tensor *dst) {
    if (!copyable(__func__, src, dst)) return false;
    ggml_backend_buffer_t buffer = device_tensor_buffer(dst);
    return copy_directly(__func__, buffer, src, dst) == GGML_HOST_OK;
}

// In whole blocks of the type, because a device may store them rearranged.
static void copy_staged(const struct ggml_tensor *src, struct ggml_tensor *dst, char *staging,
                        size_t capacity) {
    const size_t bytes = ggml_nbytes(src);
    const size_t block = ggml_type_size(src->type);
    const bool in_blocks = block > 0 && block < capacity && capacity < bytes;
    const size_t piece = in_blocks ? capacity - capacity % block : capacity;
    for (size_t done = 0; done < bytes; done += MIN(piece, bytes - done)) {
        const unsigned long errors_before = ggml_fail_count();
        ggml_backend_tensor_get(src, staging, done, MIN(piece, bytes - done));
        if (ggml_fail_count() != errors_before) return;
        ggml_backend_tensor_set(dst, staging, done, MIN(piece, bytes - done));
        if (ggml_fail_count() != errors_before) return;
    }
}

// Device memory to device memory of another plugin: 1 MiB at a time, and 4 KiB on the stack where
// memory is short, so that a copy fails for want of memory only where pieces are not possible.
static void copy_through_host(const struct ggml_tensor *src, struct ggml_tensor *dst) {
    char small[SMALL_STAGING_BYTES];
    // What can't be reached byte by byte goes in one piece.
    const bool in_pieces = tensor_access_unit(src) == 1 && tensor_access_unit(dst) == 1;
    const size_t bytes = ggml_nbytes(src);
    const size_t capacity = in_pieces ? MIN(bytes, (size_t)STAGING_BYTES) : bytes;
    char *staging = capacity > sizeof(small) ? ggml_mem_alloc(capacity) : NULL;
    if (!staging && !in_pieces && capacity > sizeof(small)) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory to copy '%s' as a whole", src->name);
        return;
    }
    copy_staged(src, dst, staging ? staging : small, staging ? capacity : sizeof(small));
    ggml_mem_free(staging);
}

// One transfer if either side is host memory, then the plugin of the destination, then through host
// memory.
void ggml_backend_tensor_copy(const struct ggml_tensor *src, struct ggml_tensor *dst) {
    if (!copyable(__func__, src, dst)) return;
    if (ggml_backend_buffer_is_host(device_tensor_buffer(src))) {
        ggml_backend_tensor_set(dst, src->data, 0, ggml_nbytes(src));
    } else if (ggml_backend_buffer_is_host(device_tensor_buffer(dst))) {
        ggml_backend_tensor_get(src, dst->data, 0, ggml_nbytes(src));
    } else if (copy_directly(__func__, device_tensor_buffer(dst), src, dst) ==
               GGML_HOST_UNSUPPORTED) {
        copy_through_host(src, dst);
    }
}

// UNSUPPORTED if the stream can't; any other failure is recorded.
static enum ggml_host_status queue_copy(const char *function, ggml_backend_t backend_src,
                                        ggml_backend_t backend_dst, const struct ggml_tensor *src,
                                        struct ggml_tensor *dst) {
    if (!backend_dst->table->cpy_tensor_async) return GGML_HOST_UNSUPPORTED;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = backend_dst->table->cpy_tensor_async(backend_src, backend_dst, src, dst);
    if (status == GGML_HOST_UNSUPPORTED && ggml_fail_count() == errors_before)
        return GGML_HOST_UNSUPPORTED;
    return device_check_status(status, errors_before, function, device_stream_label(backend_dst));
}

// For the scheduler, which has a way of its own where the streams can't.
bool stream_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                       const struct ggml_tensor *src, struct ggml_tensor *dst) {
    THREAD_GUARD(backend_src, false);
    THREAD_GUARD(backend_dst, false);
    if (!device_require_arg(backend_src, __func__, "source stream")) return false;
    if (!device_require_arg(backend_dst, __func__, "destination stream")) return false;
    return copyable(__func__, src, dst) &&
           queue_copy(__func__, backend_src, backend_dst, src, dst) == GGML_HOST_OK;
}

void ggml_backend_tensor_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                                    const struct ggml_tensor *src, struct ggml_tensor *dst) {
    THREAD_GUARD_VOID(backend_src);
    THREAD_GUARD_VOID(backend_dst);
    if (!device_require_arg(backend_src, __func__, "source stream")) return;
    if (!device_require_arg(backend_dst, __func__, "destination stream")) return;
    if (!copyable(__func__, src, dst)) return;
    if (queue_copy(__func__, backend_src, backend_dst, src, dst) != GGML_HOST_UNSUPPORTED) return;
    // The blocking copy sees neither queue: both have to be empty before it, the destination's too,
    // whose work may still read what is overwritten.
    ggml_backend_synchronize(backend_src);
    if (backend_dst != backend_src) ggml_backend_synchronize(backend_dst);
    ggml_backend_tensor_copy(src, dst);
}
