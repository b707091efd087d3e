// SPDX-License-Identifier: MIT
// Devices: validating wrappers of struct ggml_device_table; new streams.
#include <string.h>

#include "base/mem.h"
#include "device/check.h"
#include "device/stream.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "plugin/registry/live.h"
#include "tensor/node_since.h"

// All wrappers of names return a placeholder and record an error for a broken plugin, never NULL.
const char *ggml_backend_dev_name(ggml_backend_dev_t device) {
    if (!device_require_arg(device, __func__, "device")) return "NULL";
    const char *name = device->table->get_name ? device->table->get_name(device) : NULL;
    if (name) return name;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: a device has no name", __func__);
    return "unnamed";
}

const char *ggml_backend_dev_description(ggml_backend_dev_t device) {
    if (!device_require_arg(device, __func__, "device")) return "NULL";
    const char *text =
        device->table->get_description ? device->table->get_description(device) : NULL;
    if (text) return text;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: device %s has no description", __func__,
              device_label(device));
    return device_label(device);
}

// Cuts free memory to the total, and records a plugin that reports more.
static void clamp_memory(const char *function, ggml_backend_dev_t device, size_t *free_bytes,
                         size_t total_bytes) {
    if (*free_bytes <= total_bytes) return;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: device %s reports %zu free bytes of %zu", function,
              device_label(device), *free_bytes, total_bytes);
    *free_bytes = total_bytes;
}

// Both numbers are 0 for a device that doesn't report its memory.
static void query_memory(const char *function, ggml_backend_dev_t device, size_t *out_free,
                         size_t *out_total) {
    *out_free = 0;
    *out_total = 0;
    if (!device->table->get_memory) return;
    device->table->get_memory(device, out_free, out_total);
    clamp_memory(function, device, out_free, *out_total);
}

void ggml_backend_dev_memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (device_require_arg(device, __func__, "device")) {
        query_memory(__func__, device, &free_bytes, &total_bytes);
    }
    if (free) *free = free_bytes;
    if (total) *total = total_bytes;
}

// The device's type; one that this host does not know counts as an accelerator.
static enum ggml_backend_dev_type known_type(const char *function, ggml_backend_dev_t device,
                                             int type) {
    if (type >= GGML_BACKEND_DEVICE_TYPE_CPU && type <= GGML_BACKEND_DEVICE_TYPE_META) {
        return (enum ggml_backend_dev_type)type;
    }
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: device %s is of no known type", function,
              device_label(device));
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device) {
    if (!device_require_arg(device, __func__, "device")) return GGML_BACKEND_DEVICE_TYPE_CPU;
    return known_type(__func__, device,
                      device->table->get_type ? (int)device->table->get_type(device) : -1);
}

// Members that a plugin leaves NULL get a text: applications print them.
void ggml_backend_dev_get_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    if (!device_require_arg(props, __func__, "result")) return;
    memset(props, 0, sizeof(*props));
    if (!device_require_arg(device, __func__, "device")) {
        props->name = props->description = "NULL";
        return;
    }
    if (device->table->get_props) {
        device->table->get_props(device, props);
        props->type = known_type(__func__, device, (int)props->type);
        clamp_memory(__func__, device, &props->memory_free, props->memory_total);
    } else {
        props->type = ggml_backend_dev_type(device);
        query_memory(__func__, device, &props->memory_free, &props->memory_total);
    }
    if (!props->name) props->name = ggml_backend_dev_name(device);
    if (!props->description) props->description = ggml_backend_dev_description(device);
}

ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device) {
    return device_require_arg(device, __func__, "device") ? device->reg : NULL;
}

// Attaches the host's record to a new stream and counts the device as in use. A stream that was
// counted already, because one wrapper called another, is counted once. False if there is no memory
// for the record; the stream is freed then.
static bool device_count_stream(ggml_backend_t backend, ggml_backend_dev_t device) {
    struct stream_host *own = NULL;
    if (backend && !backend->host) own = ggml_mem_calloc(1, sizeof(*own));
    if (own) {
        own->maker = stream_host_maker();
        backend->host = own;
    } else if (backend && !backend->host) {
        if (backend->table->free) backend->table->free(backend);
        host_live_remove(device);
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_backend_dev_init: no memory for a stream of %s",
                  device_label(device));
        return false;
    }
    device_live_transfer(own ? &own->counted : NULL, device);
    return true;
}

// Status and stream have to agree; NULL after the error was set. The device counts as in use
// before the call, so that its plugin isn't unloaded meanwhile.
ggml_backend_t ggml_backend_dev_init(ggml_backend_dev_t device, const char *params) {
    if (!device_require_arg(device, __func__, "device")) return NULL;
    const char *label = device_label(device);
    if (!device_offers(device->table->init_backend != NULL, __func__, label, "init_backend"))
        return NULL;
    const unsigned long errors_before = ggml_fail_count();
    host_live_add(device);
    ggml_backend_t backend = NULL;
    const int32_t status = device->table->init_backend(device, params, &backend);
    if (status != GGML_HOST_OK) {
        backend = NULL;
        device_failed_to(status, errors_before, "%s: device %s could not open a stream", __func__,
                         label);
    }
    if (backend &&
        !(backend->table && backend->table->size >= offsetof(struct ggml_stream_table, reserved))) {
        ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: device %s made a stream without a table", __func__,
                  label);
        backend = NULL; // nothing of it can be called
    }
    if (!device_count_stream(backend, device)) return NULL;
    if (!backend) {
        device_fail_default(errors_before, GGML_HOST_BAD_PLUGIN,
                            "%s: device %s made no stream, and says that it did", __func__, label);
        return NULL;
    }
    if (!backend->device) backend->device = device;
    return backend;
}

// NULL with a message: a device without a buffer type can't hold tensors.
ggml_backend_buffer_type_t ggml_backend_dev_buffer_type(ggml_backend_dev_t device) {
    if (!device_require_arg(device, __func__, "device")) return NULL;
    ggml_backend_buffer_type_t buft =
        device->table->get_buffer_type ? device->table->get_buffer_type(device) : NULL;
    if (!device_buft_usable(buft)) {
        ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: device %s has no buffer type, or one without a table",
                  __func__, device_label(device));
    }
    return device_buft_usable(buft) ? buft : NULL;
}

// NULL without a message: pinned memory is optional.
ggml_backend_buffer_type_t ggml_backend_dev_host_buffer_type(ggml_backend_dev_t device) {
    if (!device_require_arg(device, __func__, "device")) return NULL;
    ggml_backend_buffer_type_t buft =
        device->table->get_host_buffer_type ? device->table->get_host_buffer_type(device) : NULL;
    return device_buft_usable(buft) ? buft : NULL;
}

// Wraps memory of the application without copying it. UNSUPPORTED for devices without the entry.
ggml_backend_buffer_t ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_t device, void *ptr,
                                                            size_t size, size_t max_tensor_size) {
    if (!device_require_arg(device, __func__, "device") ||
        !device_require_arg(ptr, __func__, "pointer"))
        return NULL;
    const char *label = device_label(device);
    if (!device_offers(device->table->buffer_from_host_ptr != NULL, __func__, label,
                       "buffer_from_host_ptr")) {
        return NULL;
    }
    const unsigned long errors_before = ggml_fail_count();
    host_live_add(device);
    ggml_backend_buffer_t buffer = NULL;
    const int32_t status =
        device->table->buffer_from_host_ptr(device, ptr, size, max_tensor_size, &buffer);
    if (status != GGML_HOST_OK) {
        buffer = NULL;
        device_failed_to(status, errors_before, "%s: device %s could not wrap %zu bytes at %p",
                         __func__, label, size, ptr);
    } else if (!device_buffer_usable(__func__, label, buffer)) {
        buffer = NULL;
    }
    device_live_transfer(buffer ? &buffer->host : NULL, device);
    return buffer;
}

// Whether a node can be passed to a device; records why not.
static bool op_given(const char *function, const struct ggml_tensor *op) {
    if (!device_require_arg(op, function, "tensor")) return false;
    if (!(op->flags & GGML_TENSOR_FLAG_ERROR)) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the tensor is in error: %s", function,
              op->extra ? (const char *)op->extra : op->name);
    return false;
}

// Whether the node needs a newer contract than the device's plugin was built with. Only older
// plugins are concerned: a newer one declines what it doesn't know itself.
static bool is_newer(const struct ggml_tensor *op, ggml_backend_dev_t device) {
    if (GGML_CONTRACT_MINOR == 0) return false;
    const int needed = op_needs_minor(op);
    if (needed == 0) return false;
    const int minor = host_device_minor(device);
    return minor < GGML_CONTRACT_MINOR && needed > minor;
}

// A node with a newer meaning is declined without calling the plugin, which would judge it by the
// old meaning.
bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    if (!device_require_arg(device, __func__, "device") || !op_given(__func__, op)) return false;
    if (is_newer(op, device)) return false;
    if (device->table->supports_op) return device->table->supports_op(device, op);
    return device_offers(false, __func__, device_label(device), "supports_op");
}

bool ggml_backend_dev_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    if (!device_require_arg(device, __func__, "device")) return false;
    if (!device_require_buft(buft, __func__)) return false;
    const char *label = device_label(device);
    return device_offers(device->table->supports_buft != NULL, __func__, label, "supports_buft") &&
           device->table->supports_buft(device, buft);
}

// Whether the device would rather compute the node than leave it on the device of its weights;
// optional.
bool ggml_backend_dev_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    if (!device_require_arg(device, __func__, "device") || !op_given(__func__, op)) return false;
    return device->table->offload_op && device->table->offload_op(device, op);
}
