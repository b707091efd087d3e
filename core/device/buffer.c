// SPDX-License-Identifier: MIT
// Buffers: validating wrappers of struct ggml_buffer_table.
#include "base/mem.h"
#include "base/object_turn.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "plugin/registry/live.h"

// Used by the host's own types and, through the SDK, by plugins. The plugin's memory stays its own:
// the object only refers to it by `context`.
ggml_backend_buffer_t ggml_sdk_buffer_new(ggml_backend_buffer_type_t buft,
                                          const struct ggml_buffer_table *table, void *context,
                                          size_t size) {
    if (!device_require_arg(buft, __func__, "buffer type")) return NULL;
    ggml_backend_buffer_t buffer = ggml_mem_calloc(1, sizeof(*buffer));
    if (!buffer) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a buffer object of type %s", __func__,
                  device_buft_label(buft));
        return NULL;
    }
    buffer->table = table;
    buffer->buft = buft;
    buffer->context = context;
    buffer->size = size;
    buffer->usage = GGML_BACKEND_BUFFER_USAGE_ANY;
    return buffer;
}

// Of what ggml_sdk_buffer_new() made: the object only, not the memory behind it.
void ggml_sdk_buffer_free(ggml_backend_buffer_t buffer) {
    ggml_mem_free(buffer);
}

// The use count of the device goes down last: until then the plugin's code runs.
void ggml_backend_buffer_free(ggml_backend_buffer_t buffer) {
    THREAD_GUARD_END(buffer);
    if (!buffer) return;
    // Read first: the plugin frees the object.
    ggml_backend_dev_t counted = buffer->host;
    buffer->table->free(buffer);
    if (counted) host_live_remove(counted);
}

ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer) {
    return device_require_arg(buffer, __func__, "buffer") ? buffer->buft : NULL;
}

size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer) {
    return device_require_arg(buffer, __func__, "buffer") ? buffer->size : 0;
}

enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer) {
    if (!device_require_arg(buffer, __func__, "buffer")) return GGML_BACKEND_BUFFER_USAGE_ANY;
    return (enum ggml_backend_buffer_usage)buffer->usage;
}

// NULL without a message where there is no entry, and for buffers of 0 bytes but the meta device's.
void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer) {
    if (!device_require_arg(buffer, __func__, "buffer") || !buffer->table->get_base) return NULL;
    if (buffer->size == 0 && !device_buft_is_meta(buffer->buft)) return NULL;
    void *base = buffer->table->get_base(buffer);
    if (!base && buffer->size > 0) {
        ggml_fail(GGML_HOST_BAD_PLUGIN,
                  "%s: a buffer of type %s with %zu bytes has no base address", __func__,
                  device_buft_label(buffer->buft), buffer->size);
    }
    return base;
}

const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer) {
    if (!device_require_arg(buffer, __func__, "buffer")) return "NULL";
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
    return device_require_arg(buffer, __func__, "buffer") &&
           ggml_backend_buft_is_host(buffer->buft);
}

// Also the padding between tensors, which no tensor reaches.
void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    THREAD_GUARD_VOID(buffer);
    if (!device_require_arg(buffer, __func__, "buffer") || buffer->size == 0) return;
    const char *label = device_buft_label(buffer->buft);
    if (!device_offers(buffer->table->clear != NULL, __func__, label, "clear")) return;
    const unsigned long errors_before = ggml_fail_count();
    device_check_status(buffer->table->clear(buffer, value), errors_before, __func__, label);
}

// Result of an optional entry: UNSUPPORTED without a message means that there was nothing to do.
static enum ggml_host_status optional_status(int32_t status, unsigned long errors_before,
                                             const char *function, ggml_backend_buffer_t buffer) {
    if (status == GGML_HOST_UNSUPPORTED && ggml_fail_count() == errors_before) return GGML_HOST_OK;
    return device_check_status(status, errors_before, function, device_buft_label(buffer->buft));
}

void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer) {
    THREAD_GUARD_VOID(buffer);
    if (!device_require_arg(buffer, __func__, "buffer") || !buffer->table->reset) return;
    const unsigned long errors_before = ggml_fail_count();
    optional_status(buffer->table->reset(buffer), errors_before, __func__, buffer);
}

// The contract makes the entry optional; what it returns as UNSUPPORTED counts as success, since
// there was nothing to do. It takes one thread at a time, but graphs of several threads may have
// views of shared weights.
enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer,
                                                 struct ggml_tensor *tensor) {
    if (!device_require_arg(buffer, __func__, "buffer")) return GGML_STATUS_FAILED;
    if (!device_require_arg(tensor, __func__, "tensor")) return GGML_STATUS_FAILED;
    if (!buffer->table->init_tensor) return GGML_STATUS_SUCCESS;
    const unsigned long errors_before = ggml_fail_count();
    struct object_turn turn;
    object_turn_begin(&turn, buffer);
    const int32_t status = buffer->table->init_tensor(buffer, tensor);
    object_turn_end(&turn);
    return device_graph_status(optional_status(status, errors_before, __func__, buffer));
}

// Kept in the buffer and passed to the plugin, and to the members of compound buffers.
void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer,
                                   enum ggml_backend_buffer_usage usage) {
    THREAD_GUARD_VOID(buffer);
    if (!device_require_arg(buffer, __func__, "buffer")) return;
    if ((int)usage < GGML_BACKEND_BUFFER_USAGE_ANY || usage > GGML_BACKEND_BUFFER_USAGE_COMPUTE) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: there is no usage %d", __func__, (int)usage);
        return;
    }
    buffer->usage = usage;
    if (buffer->table->set_usage) {
        const unsigned long errors_before = ggml_fail_count();
        optional_status(buffer->table->set_usage(buffer, usage), errors_before, __func__, buffer);
    }
    if (ggml_backend_buffer_is_multi_buffer(buffer)) {
        ggml_backend_multi_buffer_set_usage(buffer, usage);
    }
    if (device_buft_is_meta(buffer->buft) && device_meta_functions()) {
        device_meta_functions()->set_usage(buffer, usage);
    }
}
