// SPDX-License-Identifier: MIT
// The table of a device. What needs a context of the driver makes it on the first use: listing
// devices must not start a GPU.
#include "device/device.h"

#include "device/loader.h"
#include "memory/budget.h"
#include "memory/buffer.h"
#include "queue/event.h"
#include "queue/stream.h"

struct cuda_device *cuda_device_of(ggml_backend_dev_t device) {
    return device && device->table == &cuda_device_table ? device->context : NULL;
}

// Made under the mutex, so that two threads don't both load the kernels. A failure is not kept: the
// next call tries again, as memory may be free by then. In a child of the process the mutex may be
// held for ever, by a thread that only the parent has.
struct cuda_context *cuda_device_context(struct cuda_device *device) {
    if (cuda_check_owner() != GGML_HOST_OK) return NULL;
    pthread_mutex_lock(&device->mutex);
    if (!device->context) device->context = cuda_context_new(device->handle);
    struct cuda_context *context = device->context;
    pthread_mutex_unlock(&device->mutex);
    return context;
}

// Figures of a device: what the driver says of its memory, and of the limit.
struct figures {
    size_t free, total, limit, used;
};

// Only a context knows what is free. Under the mutex: another thread may be making it.
static void ask_context(struct cuda_device *device, struct figures *f) {
    pthread_mutex_lock(&device->mutex);
    struct cuda_context *context = device->context;
    if (context && !atomic_load(&context->lost) &&
        cuda_api()->cuCtxPushCurrent(context->handle) == CUDA_SUCCESS) {
        if (cuda_api()->cuMemGetInfo(&f->free, &f->total) != CUDA_SUCCESS)
            f->free = f->total = device->memory;
        cuda_context_leave();
    }
    if (context) {
        f->limit = context->limit;
        f->used = atomic_load(&context->used);
    }
    pthread_mutex_unlock(&device->mutex);
}

// All of it is free before there is a context, and in a child of the process, where neither the
// driver nor the mutex can be used. A limit makes the device smaller.
static void device_memory(ggml_backend_dev_t handle, size_t *out_free, size_t *out_total) {
    struct cuda_device *device = handle->context;
    struct figures f = {device->memory, device->memory, cuda_budget_limit(), 0};
    if (cuda_in_owner()) ask_context(device, &f);
    *out_total = MIN(f.total, f.limit);
    *out_free = MIN(f.free, f.limit > f.used ? f.limit - f.used : 0);
    *out_free = MIN(*out_free, *out_total);
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t handle) {
    const struct cuda_device *device = handle->context;
    return device->integrated ? GGML_BACKEND_DEVICE_TYPE_IGPU : GGML_BACKEND_DEVICE_TYPE_GPU;
}

static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    (void)params;
    return cuda_stream_new(device->context, out_stream);
}

// The same for all devices: no kernel depends on the compute capability yet.
static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    (void)device;
    return simt_supports_op(node);
}

// Pinned memory is not worked on: each access would go over the bus.
static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == gpu_device_buffer_type(device);
}

static ggml_backend_buffer_type_t device_host_buffer_type(ggml_backend_dev_t device) {
    return cuda_device_of(device)->unpinned ? NULL : gpu_device_host_buffer_type(device);
}

static int32_t device_from_host(ggml_backend_dev_t device, void *ptr, size_t size,
                                size_t max_tensor_size, ggml_backend_buffer_t *out_buffer) {
    (void)max_tensor_size; // all of it lies in one piece
    return cuda_buffer_from_host(device->context, ptr, size, out_buffer);
}

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *out_props) {
    gpu_device_props(device, out_props);
    out_props->caps.host_buffer = !cuda_device_of(device)->unpinned;
    out_props->caps.buffer_from_host_ptr = cuda_device_of(device)->registers;
}

static int32_t device_event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    return cuda_event_new(device->context, out_event);
}

const struct ggml_device_table cuda_device_table = {
    .size = sizeof(cuda_device_table),
    .get_name = gpu_device_name,
    .get_description = gpu_device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = gpu_device_buffer_type,
    .get_host_buffer_type = device_host_buffer_type,
    .buffer_from_host_ptr = device_from_host,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .event_new = device_event_new,
};
