// SPDX-License-Identifier: MIT
#include "base/mem.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "host/live.h"

static void free_wrapper(struct ggml_backend_buffer *buffer) {
    ggml_mem_free(buffer);
}

ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t buft,
                                               struct ggml_backend_buffer_i iface, void *context,
                                               size_t size) {
    if (!device_given(buft, __func__, "buffer type")) return NULL;
    ggml_backend_buffer_t buffer = ggml_mem_calloc(1, sizeof(*buffer));
    if (!buffer) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a buffer object of type %s", __func__,
                  device_buft_label(buft));
        return NULL;
    }
    buffer->iface = iface;
    buffer->buft = buft;
    buffer->context = context;
    buffer->size = size;
    buffer->usage = GGML_BACKEND_BUFFER_USAGE_ANY;
    buffer->free_wrapper = free_wrapper;
    return buffer;
}

// The live count goes last: until then code of the plugin runs.
void ggml_backend_buffer_free(ggml_backend_buffer_t buffer) {
    THREAD_GUARD_END(buffer);
    if (!buffer) return;
    ggml_backend_dev_t counted = buffer->host;
    if (buffer->iface.free_buffer) buffer->iface.free_buffer(buffer);
    if (buffer->free_wrapper) buffer->free_wrapper(buffer);
    if (counted) host_live_remove(counted);
}

ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer) {
    return device_given(buffer, __func__, "buffer") ? buffer->buft : NULL;
}

size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer) {
    return device_given(buffer, __func__, "buffer") ? buffer->size : 0;
}

enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer) {
    if (!device_given(buffer, __func__, "buffer")) return GGML_BACKEND_BUFFER_USAGE_ANY;
    return buffer->usage;
}

void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer) {
    if (!device_given(buffer, __func__, "buffer") || !buffer->iface.get_base) return NULL;
    if (buffer->size == 0 && !device_buft_is_meta(buffer->buft)) return NULL;
    void *base = buffer->iface.get_base(buffer);
    if (!base && buffer->size > 0) {
        ggml_fail(GGML_HOST_BAD_PLUGIN,
                  "%s: a buffer of type %s with %zu bytes has no base address", __func__,
                  device_buft_label(buffer->buft), buffer->size);
    }
    return base;
}

const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer) {
    if (!device_given(buffer, __func__, "buffer")) return "NULL";
    return ggml_backend_buft_name(buffer->buft);
}

size_t ggml_backend_buffer_get_alignment(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_get_alignment(ggml_backend_buffer_get_type(buffer));
}

size_t ggml_backend_buffer_get_max_size(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_get_max_size(ggml_backend_buffer_get_type(buffer));
}

size_t ggml_backend_buffer_get_alloc_size(ggml_backend_buffer_t buffer,
                                          const struct ggml_tensor *tensor) {
    return ggml_backend_buft_get_alloc_size(ggml_backend_buffer_get_type(buffer), tensor);
}

bool ggml_backend_buffer_is_host(ggml_backend_buffer_t buffer) {
    return device_given(buffer, __func__, "buffer") && ggml_backend_buft_is_host(buffer->buft);
}

void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    THREAD_GUARD_VOID(buffer);
    if (!device_given(buffer, __func__, "buffer") || buffer->size == 0) return;
    const char *label = device_buft_label(buffer->buft);
    if (!device_offers(buffer->iface.clear != NULL, __func__, label, "clear")) return;
    buffer->iface.clear(buffer, value);
}

void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer) {
    THREAD_GUARD_VOID(buffer);
    if (device_given(buffer, __func__, "buffer") && buffer->iface.reset)
        buffer->iface.reset(buffer);
}

enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer,
                                                 struct ggml_tensor *tensor) {
    THREAD_GUARD(buffer, GGML_STATUS_FAILED);
    if (!device_given(buffer, __func__, "buffer")) return GGML_STATUS_FAILED;
    if (!device_given(tensor, __func__, "tensor")) return GGML_STATUS_FAILED;
    if (!buffer->iface.init_tensor) return GGML_STATUS_SUCCESS;
    const unsigned long told = ggml_fail_count();
    const enum ggml_status status = buffer->iface.init_tensor(buffer, tensor);
    return device_status(status, told, __func__, device_buft_label(buffer->buft));
}

void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer,
                                   enum ggml_backend_buffer_usage usage) {
    THREAD_GUARD_VOID(buffer);
    if (!device_given(buffer, __func__, "buffer")) return;
    if ((int)usage < GGML_BACKEND_BUFFER_USAGE_ANY || usage > GGML_BACKEND_BUFFER_USAGE_COMPUTE) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: there is no usage %d", __func__, (int)usage);
        return;
    }
    buffer->usage = usage;
    if (buffer->iface.set_usage) buffer->iface.set_usage(buffer, usage);
    if (ggml_backend_buffer_is_multi_buffer(buffer)) {
        ggml_backend_multi_buffer_set_usage(buffer, usage);
    }
    if (device_buft_is_meta(buffer->buft) && device_meta_functions()) {
        device_meta_functions()->set_usage(buffer, usage);
    }
}
