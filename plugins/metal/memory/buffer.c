// SPDX-License-Identifier: MIT
// The host sees the memory, so transfers are memcpy(), also between devices. Freeing a buffer waits
// for queued work, which may still use it.
#include "memory/buffer.h"

#include "gpu/base/tables.h"
#include "queue/stream.h"

enum { ALIGNMENT = 256 };

// Work that is queued may still use it. In a child of the process nothing is done: the memory is
// the parent's.
static void buffer_release(struct metal_buffer *buffer) {
    if (metal_in_owner()) {
        metal_streams_wait(buffer->context);
        mtl_release(buffer->handle);
    }
    ggml_aligned_free(buffer, sizeof(*buffer));
}

// Waits until no stream uses the memory.
static void buffer_free(ggml_backend_buffer_t handle) {
    buffer_release(handle->context);
    ggml_sdk_buffer_free(handle);
}

// The GPU's address, which is never dereferenced on the host.
static void *buffer_base(ggml_backend_buffer_t handle) {
    return (void *)(uintptr_t)((struct metal_buffer *)handle->context)->address;
}

// NULL for tensors in other memory, recognised by the buffer's entry.
struct metal_buffer *metal_buffer_of(const struct ggml_tensor *tensor) {
    const ggml_backend_buffer_t owner = gpu_buffer_of(tensor);
    return owner && owner->table->free == buffer_free ? owner->context : NULL;
}

// Where the host sees what a tensor has at an offset.
static char *seen(const struct metal_buffer *buffer, const struct ggml_tensor *tensor,
                  size_t offset) {
    return buffer->contents + ((uint64_t)(uintptr_t)tensor->data - buffer->address) + offset;
}

// Shared memory: the host writes it directly.
static int32_t buffer_memset(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    const struct metal_buffer *buffer = handle->context;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status == GGML_HOST_OK) memset(seen(buffer, tensor, offset), value, size);
    return status;
}

static int32_t buffer_set(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    const struct metal_buffer *buffer = handle->context;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status == GGML_HOST_OK) memcpy(seen(buffer, tensor, offset), data, size);
    return status;
}

static int32_t buffer_get(ggml_backend_buffer_t handle, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    const struct metal_buffer *buffer = handle->context;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status == GGML_HOST_OK) memcpy(data, seen(buffer, tensor, offset), size);
    return status;
}

// Also from buffers of other devices.
static int32_t buffer_copy(ggml_backend_buffer_t handle, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    const struct metal_buffer *buffer = handle->context, *from = metal_buffer_of(src);
    if (!from) return GGML_HOST_UNSUPPORTED;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status == GGML_HOST_OK) memmove(seen(buffer, dst, 0), seen(from, src, 0), ggml_nbytes(dst));
    return status;
}

static int32_t buffer_clear(ggml_backend_buffer_t handle, uint8_t value) {
    const struct metal_buffer *buffer = handle->context;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status == GGML_HOST_OK) memset(buffer->contents, value, buffer->size);
    return status;
}

static const struct ggml_buffer_table buffer_table = {
    .size = sizeof(buffer_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .memset_tensor = buffer_memset,
    .set_tensor = buffer_set,
    .get_tensor = buffer_get,
    .cpy_tensor = buffer_copy,
    .clear = buffer_clear,
};

// --- types ---------------------------------------------------------------------------------------

// Storage is shared between host and GPU. The address is available since Metal 3.
static enum ggml_host_status allocate(struct metal_buffer *buffer) {
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status != GGML_HOST_OK) return status;
    void *pool = mtl_api.pool_push();
    buffer->handle = mtl_new_buffer(buffer->context->device, buffer->size, MTL_STORAGE_SHARED);
    buffer->contents = mtl_contents(buffer->handle);
    buffer->address = mtl_gpu_address(buffer->handle);
    mtl_api.pool_pop(pool);
    if (buffer->contents && buffer->address) return GGML_HOST_OK;
    mtl_release(buffer->handle);
    return metal_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no buffer of %zu bytes", buffer->size);
}

static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    return ((struct metal_device *)buft->context)->max_buffer;
}

// Limits are checked before Metal is called, for a message that says what is wrong.
static int32_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    struct metal_context *context = metal_device_context(buft->context);
    if (!context) return GGML_HOST_FAILED;
    if (size > buft_max_size(buft))
        return metal_fail(GGML_HOST_OUT_OF_MEMORY, "metal: %zu bytes are more than a buffer has",
                          size);
    struct metal_buffer *buffer = ggml_aligned_malloc(sizeof(*buffer));
    if (!buffer) return GGML_HOST_OUT_OF_MEMORY;
    *buffer = (struct metal_buffer){.context = context, .size = size};
    const enum ggml_host_status status = allocate(buffer);
    if (status != GGML_HOST_OK) {
        ggml_aligned_free(buffer, sizeof(*buffer));
        return status;
    }
    *out_buffer = ggml_sdk_buffer_new(buft, &buffer_table, buffer, size);
    if (*out_buffer) return GGML_HOST_OK;
    buffer_release(buffer);
    return GGML_HOST_OUT_OF_MEMORY;
}

static const char *buft_name(ggml_backend_buffer_type_t buft) {
    return ((struct metal_device *)buft->context)->name;
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return ALIGNMENT;
}

static const struct ggml_buffer_type_table buft_table = {
    .size = sizeof(buft_table),
    .get_name = buft_name,
    .alloc_buffer = buft_alloc,
    .get_alignment = buft_alignment,
    .get_max_size = buft_max_size,
};

void metal_buffer_types_init(struct metal_device *device) {
    device->buft = (struct ggml_backend_buffer_type){
        .table = &buft_table, .device = &device->base, .context = device};
}
