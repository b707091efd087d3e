// SPDX-License-Identifier: MIT
// The table of a device. Its context, with the compiled kernels, is made on the first use.
#include "device/device.h"

#include "memory/buffer.h"
#include "queue/event.h"
#include "queue/stream.h"

static const char *device_name(ggml_backend_dev_t device) {
    return ((struct metal_device *)device->context)->name;
}

struct metal_device *metal_device_of(ggml_backend_dev_t device) {
    return device && device->table->get_name == device_name ? device->context : NULL;
}

// Made on first use, since compiling takes long: listing devices must not wait for it.
struct metal_context *metal_device_context(struct metal_device *device) {
    pthread_mutex_lock(&device->mutex);
    if (!device->context) device->context = metal_context_new(device->handle);
    struct metal_context *context = device->context;
    pthread_mutex_unlock(&device->mutex);
    return context;
}

static const char *device_description(ggml_backend_dev_t device) {
    return ((struct metal_device *)device->context)->description;
}

// Metal recommends how much to use, and knows what this process does. iOS ends programs that exceed
// a limit of their own; elsewhere the system says 0.
size_t metal_device_room(const struct metal_device *device) {
    const size_t used = metal_in_owner() ? mtl_allocated(device->handle) : 0;
    const size_t left = device->memory - MIN(used, device->memory);
    const size_t available =
        device->unified && mtl_api.available_memory ? mtl_api.available_memory() : 0;
    return available > 0 ? MIN(left, available) : left;
}

static void device_memory(ggml_backend_dev_t handle, size_t *out_free, size_t *out_total) {
    const struct metal_device *device = handle->context;
    *out_total = device->memory;
    *out_free = metal_device_room(device);
}

// Devices that share the host's memory count as integrated.
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t handle) {
    const struct metal_device *device = handle->context;
    return device->unified ? GGML_BACKEND_DEVICE_TYPE_IGPU : GGML_BACKEND_DEVICE_TYPE_GPU;
}

// Memory of the application's is used where it lies if the device has none of its own.
static void device_props(ggml_backend_dev_t handle, struct ggml_backend_dev_props *props) {
    const struct metal_device *device = handle->context;
    props->name = device->name;
    props->description = device->description;
    props->type = device_type(handle);
    props->device_id = device->id;
    props->caps = (struct ggml_backend_dev_caps){.async = true,
                                                 .buffer_from_host_ptr = device->unified,
                                                 .events = true,
                                                 .mmap_support = device->unified};
    device_memory(handle, &props->memory_free, &props->memory_total);
}

static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    (void)params;
    return metal_stream_new(device->context, out_stream);
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    return &((struct metal_device *)device->context)->buft;
}

// The kernels are those of plugins/gpu: their choice knows the supported operations.
static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    (void)device;
    return simt_supports_op(node);
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == device_buffer_type(device);
}

static int32_t device_event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    return metal_event_new(device->context, out_event);
}

const struct ggml_device_table metal_device_table = {
    .size = sizeof(metal_device_table),
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .buffer_from_host_ptr = metal_buffer_from_host,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .event_new = device_event_new,
};
