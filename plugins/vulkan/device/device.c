// SPDX-License-Identifier: MIT
// The table of a device. Its context, with the logical device, is made on the first use.
#include "device/device.h"

#include "memory/buffer_type.h"
#include "queue/event.h"
#include "queue/stream.h"

struct gvk_device *gvk_device_of(ggml_backend_dev_t device) {
    return device && device->table == &gvk_device_table ? device->context : NULL;
}

// A logical device costs memory and start-up time, so that it is made only for those in use. The
// mutex is held meanwhile: a second thread waits for the same context. Failures are tried again.
struct gvk_context *gvk_device_context(struct gvk_device *device) {
    pthread_mutex_lock(&device->mutex);
    if (!device->context)
        device->context = gvk_context_new(device->physical, &device->probe, &device->features);
    struct gvk_context *context = device->context;
    pthread_mutex_unlock(&device->mutex);
    return context;
}

// Heaps of the device's own; where the driver tells what is left, that, else an estimate: all of
// it.
static void device_memory(ggml_backend_dev_t handle, size_t *out_free, size_t *out_total) {
    const struct gvk_device *device = handle->context;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
        .pNext = device->probe.has.memory_budget ? &budget : NULL};
    vkGetPhysicalDeviceMemoryProperties2(device->physical, &memory);
    *out_free = 0;
    *out_total = 0;
    for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i) {
        const VkMemoryHeap *heap = &memory.memoryProperties.memoryHeaps[i];
        if (!(heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
        const uint64_t used = budget.heapUsage[i];
        const uint64_t most = budget.heapBudget[i] ? budget.heapBudget[i] : heap->size;
        *out_total += (size_t)heap->size;
        *out_free += (size_t)MIN(most > used ? most - used : 0, heap->size);
    }
}

// Who names a driver on the CPU wants it used, and programs offload to GPUs only.
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t handle) {
    const struct gvk_device *device = handle->context;
    const enum ggml_backend_dev_type type = gvk_probe_type(&device->probe);
    return device->named && type == GGML_BACKEND_DEVICE_TYPE_CPU ? GGML_BACKEND_DEVICE_TYPE_GPU
                                                                 : type;
}

static void device_props(ggml_backend_dev_t handle, struct ggml_backend_dev_props *props) {
    const struct gvk_device *device = handle->context;
    gpu_device_props(handle, props);
    props->caps.buffer_from_host_ptr = device->probe.has.host_pointer;
}

// Streams take no parameters.
static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    (void)params;
    *out_stream = gvk_stream_new(device->context);
    return *out_stream ? GGML_HOST_OK : GGML_HOST_FAILED;
}

// Lets the device use memory of the application in place; FAILED, with a message, where the driver
// can't import it.
static int32_t device_from_host(ggml_backend_dev_t device, void *ptr, size_t size,
                                size_t max_tensor_size, ggml_backend_buffer_t *out_buffer) {
    (void)max_tensor_size;
    *out_buffer = gvk_buffer_from_host(device->context, ptr, size);
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_FAILED;
}

static bool device_supports_op(ggml_backend_dev_t handle, const struct ggml_tensor *node) {
    const struct gvk_device *device = handle->context;
    return gvk_supports_op(&device->features, node);
}

// Pinned memory is worth working on only where it is the device's own.
static bool device_supports_buft(ggml_backend_dev_t handle, ggml_backend_buffer_type_t buft) {
    const struct gvk_device *device = handle->context;
    if (buft == &device->base.host_buft) return gvk_probe_unified(&device->probe);
    return buft == &device->base.buft || buft == &device->import_buft;
}

static int32_t device_event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    *out_event = gvk_event_new(device);
    return *out_event ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

const struct ggml_device_table gvk_device_table = {
    .size = sizeof(gvk_device_table),
    .get_name = gpu_device_name,
    .get_description = gpu_device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = gpu_device_buffer_type,
    .get_host_buffer_type = gpu_device_host_buffer_type,
    .buffer_from_host_ptr = device_from_host,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .event_new = device_event_new,
};
