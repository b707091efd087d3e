// SPDX-License-Identifier: MIT
// Buffer types: validating wrappers of struct ggml_buffer_type_table; allocation.
#include "device/check.h"
#include "ggml-impl.h"
#include "plugin/registry/live.h"
#include "tensor/node_since.h"

// Names go straight into messages and logs: never NULL, even for a broken plugin.
const char *ggml_backend_buft_name(ggml_backend_buffer_type_t buft) {
    if (!device_require_buft(buft, __func__)) return "NULL";
    const char *name = buft->table->get_name ? buft->table->get_name(buft) : NULL;
    if (name) return name;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: a buffer type of device %s has no name", __func__,
              device_label(buft->device));
    return "unnamed";
}

static bool is_power_of_two(size_t n) {
    return n != 0 && (n & (n - 1)) == 0;
}

// The type's alignment, 0 if the plugin returns none or no power of two.
static size_t alignment_of(ggml_backend_buffer_type_t buft) {
    const size_t alignment = buft->table->get_alignment ? buft->table->get_alignment(buft) : 0;
    return is_power_of_two(alignment) ? alignment : 0;
}

// Always a power of two, even if the type reports something else.
size_t ggml_backend_buft_get_alignment(ggml_backend_buffer_type_t buft) {
    if (!device_require_buft(buft, __func__)) return TENSOR_ALIGNMENT;
    const size_t alignment = alignment_of(buft);
    if (alignment) return alignment;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: the alignment of buffer type %s is not a power of two",
              __func__, device_buft_label(buft));
    return TENSOR_ALIGNMENT;
}

// Never 0: larger allocations are split into buffers of at most this size.
size_t ggml_backend_buft_get_max_size(ggml_backend_buffer_type_t buft) {
    if (!device_require_buft(buft, __func__)) return 0;
    if (!buft->table->get_max_size) return SIZE_MAX;
    const size_t size = buft->table->get_max_size(buft);
    if (size > 0) return size;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: buffer type %s allows buffers of 0 bytes only", __func__,
              device_buft_label(buft));
    return SIZE_MAX;
}

// At least ggml_nbytes(), whatever the plugin reports: transfers are only checked against that.
size_t ggml_backend_buft_get_alloc_size(ggml_backend_buffer_type_t buft,
                                        const struct ggml_tensor *tensor) {
    if (!device_require_buft(buft, __func__)) return 0;
    if (!device_require_arg(tensor, __func__, "tensor")) return 0;
    const size_t bytes = ggml_nbytes(tensor);
    if (!buft->table->get_alloc_size) return bytes;
    const size_t size = buft->table->get_alloc_size(buft, tensor);
    if (size >= bytes) return size;
    // A plugin can't know the size of a type that came after it.
    if (op_tensor_needs_minor(tensor) > host_device_minor(buft->device)) return bytes;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: buffer type %s wants %zu bytes for tensor '%s' of %zu",
              __func__, device_buft_label(buft), size, tensor->name, bytes);
    return bytes;
}

bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t buft) {
    if (!device_require_buft(buft, __func__)) return false;
    return buft->table->is_host && buft->table->is_host(buft);
}

ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buft) {
    return device_require_buft(buft, __func__) ? buft->device : NULL;
}

// A buffer without memory, for allocations of 0 bytes. The plugin isn't called: many APIs fail for
// 0.
static void *no_base(ggml_backend_buffer_t buffer) {
    (void)buffer;
    return NULL;
}

static int32_t clear_nothing(ggml_backend_buffer_t buffer, uint8_t value) {
    (void)buffer;
    (void)value;
    return GGML_HOST_OK;
}

static ggml_backend_buffer_t empty_buffer(ggml_backend_buffer_type_t buft) {
    static const struct ggml_buffer_table table = {
        .size = sizeof(table),
        .free = ggml_sdk_buffer_free,
        .get_base = no_base,
        .clear = clear_nothing,
    };
    return ggml_sdk_buffer_new(buft, &table, NULL, 0);
}

// Calls the plugin and checks what it returns: a table with the required entries, and at least the
// requested size. A buffer that is too small is freed again.
static ggml_backend_buffer_t plugin_buffer(const char *function, ggml_backend_buffer_type_t buft,
                                           size_t size) {
    const char *label = device_buft_label(buft);
    if (!device_offers(buft->table->alloc_buffer != NULL, function, label, "alloc_buffer"))
        return NULL;
    if (!alignment_of(buft)) {
        ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: the alignment of buffer type %s is not a power of two",
                  function, label);
        return NULL;
    }
    const unsigned long errors_before = ggml_fail_count();
    ggml_backend_buffer_t buffer = NULL;
    int32_t status = buft->table->alloc_buffer(buft, size, &buffer);
    if (status == GGML_HOST_OUT_OF_MEMORY)
        device_fail_default(errors_before, GGML_HOST_OUT_OF_MEMORY,
                            "%s: %s could not allocate %zu bytes", function, label, size);
    if (device_check_status(status, errors_before, function, label) != GGML_HOST_OK) return NULL;
    if (!device_buffer_usable(function, label, buffer)) return NULL;
    if (buffer->size >= size) return buffer;
    const size_t got = buffer->size;
    ggml_backend_buffer_free(buffer);
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: %s answered a buffer of %zu bytes instead of %zu",
              function, label, got, size);
    return NULL;
}

// The device counts as in use before the plugin is called, so that it can't be unloaded during the
// call.
ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    if (!device_require_buft(buft, __func__)) return NULL;
    // NULL for the host's own types, which are not counted.
    ggml_backend_dev_t device = buft->device;
    host_live_add(device);
    ggml_backend_buffer_t buffer =
        size > 0 ? plugin_buffer(__func__, buft, size) : empty_buffer(buft);
    device_live_transfer(buffer ? &buffer->host : NULL, device);
    return buffer;
}
