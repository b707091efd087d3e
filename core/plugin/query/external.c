// SPDX-License-Identifier: MIT
// Buffers shared with other processes and APIs, where the device's plugin offers
// "ggml.external-memory".
#include <stdatomic.h>
#include <string.h>

#include "base/status.h"
#include "device/check.h"
#include "ggml-backend-impl.h"
#include "plugin/load/load.h"
#include "plugin/query/figures.h"
#include "plugin/registry/live.h"
#include "plugin/registry/plugin.h"

// The device's plugin, held by its use count, and its extension; NULL with a message if it has
// none.
static struct host_plugin *plugin_of(ggml_backend_dev_t device, const char *function,
                                     const struct ggml_extension_external_memory **out_extension) {
    if (!device_require_arg(device, function, "device")) return NULL;
    load_builtins_once();
    struct host_plugin *plugin = host_live_hold(device);
    if (!plugin && figures_original_of(device) == device) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: not a registered device", function);
        return NULL;
    }
    const struct ggml_plugin_table *table = plugin ? plugin->table : NULL;
    const struct ggml_extension_external_memory *extension =
        table && table->get_extension
            ? table->get_extension(table, GGML_EXTENSION_EXTERNAL_MEMORY,
                                   GGML_EXTENSION_EXTERNAL_MEMORY_REVISION)
            : NULL;
    const bool offered = extension && extension->size >= sizeof(*extension) &&
                         extension->buffer_new && extension->buffer_export &&
                         extension->buffer_import;
    *out_extension = extension;
    if (offered) return plugin;
    if (plugin) atomic_fetch_sub(&plugin->live, 1);
    ggml_fail(GGML_HOST_UNSUPPORTED, "%s: the plugin of %s has no memory that others can use",
              function, device_label(device));
    return NULL;
}

static bool is_large_enough(const char *function, const char *label, ggml_backend_buffer_t buffer,
                            uint64_t bytes) {
    const size_t got = buffer->size;
    if (got >= bytes) return true;
    ggml_backend_buffer_free(buffer);
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: %s answered a buffer of %zu bytes instead of %llu",
              function, label, got, (unsigned long long)bytes);
    return false;
}

// Checks the buffer that the plugin returned, attaches it to the device, and releases the plugin.
// NULL with a message if it is unusable.
static ggml_backend_buffer_t external_take_buffer(struct host_plugin *plugin,
                                                  ggml_backend_dev_t device, const char *function,
                                                  int32_t status, unsigned long errors_before,
                                                  ggml_backend_buffer_t buffer, uint64_t bytes) {
    const char *label = device_label(device);
    if (status != GGML_HOST_OK) {
        buffer = NULL;
        device_failed_to(status, errors_before, "%s: device %s makes no such buffer", function,
                         label);
    } else if (!device_buffer_usable(function, label, buffer) ||
               !is_large_enough(function, label, buffer, bytes)) {
        buffer = NULL;
    }
    host_live_add(device);
    device_live_transfer(buffer ? &buffer->host : NULL, device);
    atomic_fetch_sub(&plugin->live, 1);
    return buffer;
}

// Memory that other processes can map or import.
ggml_backend_buffer_t ggml_backend_dev_alloc_external(ggml_backend_dev_t device, size_t bytes) {
    const struct ggml_extension_external_memory *extension = NULL;
    ggml_backend_buffer_t buffer = NULL;
    if (bytes == 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: a buffer of no bytes", __func__);
        return NULL;
    }
    struct host_plugin *plugin = plugin_of(device, __func__, &extension);
    if (!plugin) return NULL;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = extension->buffer_new(device, bytes, &buffer);
    return external_take_buffer(plugin, device, __func__, status, errors_before, buffer, bytes);
}

// Whether an exported description is complete.
static bool names_memory(const struct ggml_external_memory *memory, enum ggml_external_type type) {
    return memory->type == (uint32_t)type && memory->fd >= 0 && memory->bytes > 0 &&
           memory->allocation_bytes >= memory->bytes;
}

// The caller owns the exported descriptor and closes it.
enum ggml_host_status ggml_backend_buffer_export(ggml_backend_buffer_t buffer,
                                                 enum ggml_external_type type,
                                                 struct ggml_external_memory *out_memory) {
    const struct ggml_extension_external_memory *extension = NULL;
    if (!buffer || !out_memory || out_memory->size < sizeof(*out_memory)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "%s: the buffer or out_memory is NULL, or out_memory->size is not set",
                         __func__);
    }
    // The size is the caller's; everything else is cleared, so that a failure leaves no descriptor.
    const uint32_t size = out_memory->size;
    memset(out_memory, 0, size);
    out_memory->size = size;
    out_memory->fd = -1;
    struct host_plugin *plugin = plugin_of(buffer->buft->device, __func__, &extension);
    if (!plugin) return ggml_last_status();
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = extension->buffer_export(buffer, (uint32_t)type, out_memory);
    const char *label = device_label(buffer->buft->device);
    enum ggml_host_status result = device_check_status(status, errors_before, __func__, label);
    if (result == GGML_HOST_OK && !names_memory(out_memory, type))
        result =
            ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: what %s exports is no memory", __func__, label);
    if (result != GGML_HOST_OK) *out_memory = (struct ggml_external_memory){.size = size, .fd = -1};
    atomic_fetch_sub(&plugin->live, 1);
    return result;
}

// The plugin checks whether the memory suits the device.
ggml_backend_buffer_t ggml_backend_dev_import_external(ggml_backend_dev_t device,
                                                       const struct ggml_external_memory *memory) {
    const struct ggml_extension_external_memory *extension = NULL;
    ggml_backend_buffer_t buffer = NULL;
    if (!memory || memory->size < sizeof(*memory)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: memory is NULL, or its size is not set",
                  __func__);
        return NULL;
    }
    struct host_plugin *plugin = plugin_of(device, __func__, &extension);
    if (!plugin) return NULL;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = extension->buffer_import(device, memory, &buffer);
    return external_take_buffer(plugin, device, __func__, status, errors_before, buffer,
                                memory->bytes);
}
