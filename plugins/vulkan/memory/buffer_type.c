// SPDX-License-Identifier: MIT
// Device memory that the host can't see gets addresses from a reserved range (gpu/base/space.h), so
// that offsets can be computed as for any memory; shaders are given buffer and offset instead.
#include "memory/buffer_type.h"

#include "gpu/base/tables.h"
#include "memory/transfer.h"
#include "queue/timeline.h"

// Streams may still have work queued that uses it: all of the context's timelines are waited for.
static void buffer_free(ggml_backend_buffer_t buffer);

// Where a tensor lies, as shaders need it: buffer and byte offset. No buffer for memory of
// others.
struct gvk_place gvk_place_of(const struct ggml_tensor *tensor) {
    const ggml_backend_buffer_t owner = gpu_buffer_of(tensor);
    if (!owner || owner->table->free != buffer_free) return (struct gvk_place){0};
    struct gvk_buffer *buffer = owner->context;
    return (struct gvk_place){buffer, (uint64_t)((char *)tensor->data - buffer->base)};
}

uint64_t gvk_place_id(const struct ggml_tensor *tensor) {
    const struct gvk_place place = gvk_place_of(tensor);
    return place.buffer ? place.buffer->id : 0;
}

// --- buffers -------------------------------------------------------------------------------------

// Waits for all work of the context first: work that was queued may still use the memory.
static void buffer_free(ggml_backend_buffer_t handle) {
    struct gvk_buffer *buffer = handle->context;
    gvk_timeline_drain(buffer->context);
    gvk_buffer_free(buffer);
    ggml_sdk_buffer_free(handle);
}

static void *buffer_base(ggml_backend_buffer_t handle) {
    return ((struct gvk_buffer *)handle->context)->base;
}

// Byte offset in the buffer of a position in a tensor.
static uint64_t offset_of(ggml_backend_buffer_t handle, const struct ggml_tensor *tensor,
                          size_t offset) {
    const struct gvk_buffer *buffer = handle->context;
    return (uint64_t)((char *)tensor->data - buffer->base) + offset;
}

static int32_t answer(bool done) {
    return done ? GGML_HOST_OK : GGML_HOST_FAILED;
}

static int32_t buffer_memset(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    return answer(
        gvk_transfer_fill(handle->context, offset_of(handle, tensor, offset), size, value));
}

// Writes n_copies pieces in one submission instead of one for each.
static int32_t buffer_set_2d(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                             const void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    const struct gvk_move move = {.buffer = handle->context,
                                  .offset = offset_of(handle, tensor, offset),
                                  .host = (char *)(uintptr_t)data,
                                  .size = size,
                                  .n = n_copies,
                                  .stride_buffer = stride_tensor,
                                  .stride_host = stride_data};
    return answer(gvk_transfer_set(&move));
}

// As buffer_set_2d(), in the other direction.
static int32_t buffer_get_2d(ggml_backend_buffer_t handle, const struct ggml_tensor *tensor,
                             void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    const struct gvk_move move = {.buffer = handle->context,
                                  .offset = offset_of(handle, tensor, offset),
                                  .host = data,
                                  .size = size,
                                  .n = n_copies,
                                  .stride_buffer = stride_tensor,
                                  .stride_host = stride_data};
    return answer(gvk_transfer_get(&move));
}

// Vulkan forbids copies whose ranges overlap.
static int32_t buffer_copy(ggml_backend_buffer_t handle, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    struct gvk_buffer *buffer = handle->context;
    const struct gvk_place from = gvk_place_of(src);
    const uint64_t to = offset_of(handle, dst, 0), size = ggml_nbytes(dst);
    if (!from.buffer || from.buffer->context != buffer->context) return GGML_HOST_UNSUPPORTED;
    // What overlaps goes through the host.
    if (from.buffer == buffer && from.offset < to + size && to < from.offset + size)
        return GGML_HOST_UNSUPPORTED;
    return answer(gvk_transfer_copy(from.buffer, from.offset, buffer, to, size));
}

static int32_t buffer_clear(ggml_backend_buffer_t handle, uint8_t value) {
    return answer(gvk_transfer_fill(handle->context, 0, handle->size, value));
}

static const struct ggml_buffer_table buffer_table = {
    .size = sizeof(buffer_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .memset_tensor = buffer_memset,
    .set_tensor = gpu_buffer_set,
    .get_tensor = gpu_buffer_get,
    .set_tensor_2d = buffer_set_2d,
    .get_tensor_2d = buffer_get_2d,
    .cpy_tensor = buffer_copy,
    .clear = buffer_clear,
};

// --- types ---------------------------------------------------------------------------------------

static struct gvk_device *device_of(ggml_backend_buffer_type_t buft) {
    return buft->context;
}

// The host's object for a buffer, which it owns from here on; the buffer is freed if there is no
// memory for it. NULL then.
static ggml_backend_buffer_t wrap(ggml_backend_buffer_type_t buft, struct gvk_buffer *buffer,
                                  size_t size) {
    ggml_backend_buffer_t handle = ggml_sdk_buffer_new(buft, &buffer_table, buffer, size);
    if (!handle) gvk_buffer_free(buffer);
    return handle;
}

// Allocates device or pinned host memory. The limit is checked here for a
// message that says what to do.
static int32_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    struct gvk_device *device = device_of(buft);
    struct gvk_context *context = gvk_device_context(device);
    const bool host = buft != &device->base.buft;
    struct gvk_buffer *buffer;
    if (!context || !gvk_context_alive(context)) return GGML_HOST_FAILED;
    if (size > buft->table->get_max_size(buft)) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY,
                      "%s: %zu bytes are above the driver's limit of %zu: "
                      "spread the tensors over several buffers",
                      device->base.name, size, buft->table->get_max_size(buft));
        return GGML_HOST_OUT_OF_MEMORY;
    }
    const enum gvk_memory_use use = host ? GVK_MEMORY_HOST : GVK_MEMORY_DEVICE;
    const enum ggml_status status = gvk_buffer_new(context, size, use, &buffer);
    if (status != GGML_STATUS_SUCCESS) return ggml_entry_status(status);
    // Host buffers have addresses of their own; device buffers get a reserved range.
    if (!host) return gvk_buffer_wrap(device, buffer, size, out_buffer);
    *out_buffer = wrap(buft, buffer, size);
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

// Takes ownership of the buffer in any case.
int32_t gvk_buffer_wrap(struct gvk_device *device, struct gvk_buffer *buffer, size_t size,
                        ggml_backend_buffer_t *out_buffer) {
    const enum ggml_status status = gvk_buffer_reserve_space(buffer, size);
    if (status != GGML_STATUS_SUCCESS) {
        gvk_buffer_free(buffer);
        return ggml_entry_status(status);
    }
    *out_buffer = wrap(&device->base.buft, buffer, size);
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

struct gvk_buffer *gvk_buffer_of(ggml_backend_buffer_t handle) {
    return handle && handle->table->free == buffer_free ? handle->context : NULL;
}

// NULL with a message if the memory isn't aligned as the driver wants it, or can't be imported.
// Drivers need not look at a size that no buffer may have.
// Nothing is allocated on the device.
ggml_backend_buffer_t gvk_buffer_from_host(struct gvk_device *device, void *ptr, size_t size) {
    const uint64_t alignment = device->probe.host_pointer_alignment;
    struct gvk_context *context = gvk_device_context(device);
    struct gvk_buffer *buffer;
    if (!context || !gvk_context_alive(context)) return NULL;
    if (!device->probe.has.host_pointer || alignment == 0 || (uintptr_t)ptr % alignment != 0 ||
        size % alignment != 0) {
        ggml_sdk_fail(
            GGML_HOST_UNSUPPORTED,
            "%s: host memory can be used in place only if its address and size are multiples "
            "of %llu and the driver imports it: copy the tensors instead",
            device->base.name, (unsigned long long)(alignment ? alignment : 4096));
        return NULL;
    }
    const uint64_t most = gvk_buffer_most(&device->probe);
    if (size == 0 || size > most) {
        ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT,
                      "%s: a buffer of host memory can't have %zu bytes, but 1 to %llu",
                      device->base.name, size, (unsigned long long)most);
        return NULL;
    }
    if (gvk_buffer_import(context, ptr, size, &buffer) != GGML_STATUS_SUCCESS) return NULL;
    return wrap(&device->import_buft, buffer, size);
}

// Three types share the functions: device memory, pinned host memory and imported memory.
static const char *buft_name(ggml_backend_buffer_type_t buft) {
    const struct gvk_device *device = device_of(buft);
    return buft == &device->base.buft        ? device->base.name
           : buft == &device->base.host_buft ? device->base.host_name
                                             : device->import_name;
}

// At least as much as whole vectors need, so that most operands begin at an aligned offset.
static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    return MAX(device_of(buft)->features.min_storage_alignment, 64);
}

static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    return (size_t)MIN(gvk_buffer_most(&device_of(buft)->probe), (uint64_t)SIZE_MAX);
}

static bool buft_is_host(ggml_backend_buffer_type_t buft) {
    return buft != &device_of(buft)->base.buft;
}

static const struct ggml_buffer_type_table buft_table = {
    .size = sizeof(buft_table),
    .get_name = buft_name,
    .alloc_buffer = buft_alloc,
    .get_alignment = buft_alignment,
    .get_max_size = buft_max_size,
    .is_host = buft_is_host,
};

void gvk_buffer_types_init(struct gvk_device *device, ggml_backend_reg_t reg, int number) {
    gpu_device_init(&device->base, &gvk_device_table, reg, &buft_table, "Vulkan", number);
    device->import_buft = device->base.buft;
}
