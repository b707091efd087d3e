// SPDX-License-Identifier: MIT
// Where the host sees the memory, transfers are memcpy(), also between devices; private memory is
// copied by the device, through staging memory. Freeing a buffer waits for queued work, which may
// still use it.
#include "memory/buffer.h"

#include <unistd.h>

#include "gpu/base/tables.h"
#include "memory/copy.h"
#include "memory/residency.h"
#include "queue/stream.h"

enum { ALIGNMENT = 256 };

static atomic_uint_fast64_t last_id;

// Work that is queued may still use it. In a child of the process nothing is done: the memory is
// the parent's.
static void buffer_release(struct metal_buffer *buffer) {
    if (metal_in_owner()) {
        metal_streams_wait(buffer->context);
        atomic_fetch_add(&buffer->context->generation, 1);
        for (int i = 0; i < buffer->n_windows; ++i) {
            metal_residency_remove(buffer->context, buffer->windows[i].handle);
            mtl_release(buffer->windows[i].handle);
        }
    }
    ggml_aligned_free(buffer, sizeof(*buffer));
}

static void buffer_free(ggml_backend_buffer_t handle) {
    buffer_release(handle->context);
    ggml_sdk_buffer_free(handle);
}

// What tensors' data counts from: where the host sees the memory, or the device. Programs go
// through the entries below in either case: the type does not say that it is the host's.
static void *buffer_base(ggml_backend_buffer_t handle) {
    return (void *)(uintptr_t)((struct metal_buffer *)handle->context)->base;
}

// --- places --------------------------------------------------------------------------------------

// NULL for tensors in other memory, recognised by the buffer's entry.
static const struct metal_buffer *buffer_of(const struct ggml_tensor *tensor) {
    const ggml_backend_buffer_t owner = gpu_buffer_of(tensor);
    return owner && owner->table->free == buffer_free ? owner->context : NULL;
}

uint64_t metal_buffer_id(const struct ggml_tensor *tensor) {
    const struct metal_buffer *buffer = buffer_of(tensor);
    return buffer ? buffer->id : 0;
}

// Bytes from the beginning of the buffer to the tensor.
static size_t offset_in(const struct metal_buffer *buffer, const struct ggml_tensor *tensor) {
    return (size_t)((uint64_t)(uintptr_t)tensor->data - buffer->base);
}

// The window that shows bytes [begin, begin + size), or NULL.
static const struct metal_window *find_window(const struct metal_buffer *buffer, size_t begin,
                                              size_t size) {
    for (int i = 0; i < buffer->n_windows; ++i) {
        const struct metal_window *w = &buffer->windows[i];
        if (begin >= w->begin && begin - w->begin <= w->size &&
            size <= w->size - (begin - w->begin))
            return w;
    }
    return NULL;
}

bool metal_place_of(const struct ggml_tensor *tensor, struct metal_place *out_place) {
    const struct metal_buffer *buffer = buffer_of(tensor);
    *out_place = (struct metal_place){0};
    if (!buffer) return false;
    const size_t offset = offset_in(buffer, tensor);
    const struct metal_window *window = find_window(buffer, offset, ggml_nbytes(tensor));
    if (!window) return false;
    const size_t at = offset - window->begin;
    *out_place = (struct metal_place){.context = buffer->context,
                                      .is_aliased = buffer->n_windows > 1,
                                      .handle = window->handle,
                                      .offset = at,
                                      .contents = window->contents ? window->contents + at : NULL,
                                      .address = window->address + at};
    return true;
}

mtl_id metal_next_window(const struct ggml_tensor *tensor, int *i) {
    const struct metal_buffer *buffer = buffer_of(tensor);
    const size_t begin = offset_in(buffer, tensor), end = begin + ggml_nbytes(tensor);
    while (*i < buffer->n_windows) {
        const struct metal_window *w = &buffer->windows[(*i)++];
        if (w->begin < end && begin < w->begin + w->size) return w->handle;
    }
    return NULL;
}

// Windows of one buffer follow each other for the host: the first one leads to every byte.
static char *host_bytes(const struct metal_buffer *buffer, const struct ggml_tensor *tensor,
                        size_t offset) {
    return buffer->windows[0].contents + offset_in(buffer, tensor) + offset;
}

// --- entries -------------------------------------------------------------------------------------

// Private memory has one window.
static bool is_private(const struct metal_buffer *buffer) {
    return !buffer->windows[0].contents;
}

static struct metal_spot spot_of(const struct metal_buffer *buffer,
                                 const struct ggml_tensor *tensor, size_t offset) {
    const size_t at = offset_in(buffer, tensor) + offset;
    return (struct metal_spot){buffer->windows[0].handle, at, buffer->windows[0].address + at, 0};
}

static int32_t buffer_memset(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    const struct metal_buffer *buffer = handle->context;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status != GGML_HOST_OK) return status;
    if (is_private(buffer))
        return metal_fill_now(buffer->context, spot_of(buffer, tensor, offset), value, size);
    memset(host_bytes(buffer, tensor, offset), value, size);
    return GGML_HOST_OK;
}

static int32_t buffer_set(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    const struct metal_buffer *buffer = handle->context;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status != GGML_HOST_OK) return status;
    if (is_private(buffer))
        return metal_upload_now(buffer->context, spot_of(buffer, tensor, offset), data, size);
    memcpy(host_bytes(buffer, tensor, offset), data, size);
    return GGML_HOST_OK;
}

static int32_t buffer_get(ggml_backend_buffer_t handle, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    const struct metal_buffer *buffer = handle->context;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status != GGML_HOST_OK) return status;
    if (is_private(buffer))
        return metal_download_now(buffer->context, spot_of(buffer, tensor, offset), data, size);
    memcpy(data, host_bytes(buffer, tensor, offset), size);
    return GGML_HOST_OK;
}

static int32_t copy_private(const struct metal_buffer *to, struct ggml_tensor *dst,
                            const struct metal_buffer *from, const struct ggml_tensor *src) {
    const uintptr_t x = (uintptr_t)src->data, y = (uintptr_t)dst->data;
    const size_t size = ggml_nbytes(dst);
    if (from->context != to->context || (x < y + size && y < x + size))
        return GGML_HOST_UNSUPPORTED;
    const struct metal_copy copy = {spot_of(from, src, 0), spot_of(to, dst, 0), size, 1};
    return size > 0 ? metal_copy_now(to->context, &copy) : GGML_HOST_OK;
}

// Also from buffers of other devices, where the host sees both. The core goes through the host
// where private memory overlaps: copies of the device leave their order open.
static int32_t buffer_copy(ggml_backend_buffer_t handle, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    const struct metal_buffer *buffer = handle->context, *from = buffer_of(src);
    if (!from || is_private(from) != is_private(buffer)) return GGML_HOST_UNSUPPORTED;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status != GGML_HOST_OK) return status;
    if (is_private(buffer)) return copy_private(buffer, dst, from, src);
    memmove(host_bytes(buffer, dst, 0), host_bytes(from, src, 0), ggml_nbytes(dst));
    return GGML_HOST_OK;
}

static int32_t buffer_clear(ggml_backend_buffer_t handle, uint8_t value) {
    const struct metal_buffer *buffer = handle->context;
    const enum ggml_host_status status = metal_context_check(buffer->context);
    if (status != GGML_HOST_OK) return status;
    if (is_private(buffer))
        return metal_fill_now(buffer->context, metal_spot_of(buffer->windows[0].handle, 0), value,
                              buffer->windows[0].size);
    memset(buffer->windows[0].contents, value, buffer->size);
    return GGML_HOST_OK;
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

// --- making --------------------------------------------------------------------------------------

// Appends a window of the buffer over a buffer of Metal's, which it takes over; NULL fails.
static bool add_window(struct metal_buffer *buffer, mtl_id handle, size_t begin, size_t size) {
    struct metal_window *w = &buffer->windows[buffer->n_windows];
    *w = (struct metal_window){.handle = handle,
                               .begin = begin,
                               .size = size,
                               .contents = mtl_contents(handle),
                               .address = mtl_gpu_address(handle)};
    if (!w->address) {
        mtl_release(handle);
        return false;
    }
    metal_residency_add(buffer->context, handle);
    buffer->n_windows++;
    return true;
}

// A buffer without windows on the device; NULL after set_error.
static struct metal_buffer *buffer_new(struct metal_device *device, size_t size) {
    struct metal_context *context = metal_device_context(device);
    if (!context || metal_context_check(context) != GGML_HOST_OK) return NULL;
    struct metal_buffer *buffer = ggml_aligned_malloc(sizeof(*buffer));
    if (!buffer) return NULL;
    memset(buffer, 0, sizeof(*buffer));
    buffer->context = context;
    buffer->id = atomic_fetch_add(&last_id, 1) + 1;
    buffer->size = size;
    return buffer;
}

// Hands the buffer to the host if it is complete, else releases it.
static int32_t buffer_finish(struct metal_buffer *buffer, ggml_backend_buffer_type_t buft,
                             bool complete, ggml_backend_buffer_t *out_buffer) {
    if (complete) *out_buffer = ggml_sdk_buffer_new(buft, &buffer_table, buffer, buffer->size);
    if (*out_buffer) return GGML_HOST_OK;
    if (!complete)
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no buffer of %zu bytes", buffer->size);
    buffer_release(buffer);
    return GGML_HOST_OUT_OF_MEMORY;
}

static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    return ((struct metal_device *)buft->context)->max_buffer;
}

// Limits are checked before Metal is called, for a message that says what is wrong. What the system
// recommends is the limit: beyond it Metal begins to move memory in and out with every command
// buffer, or fails one.
static enum ggml_host_status check_size(const struct metal_device *device, size_t size) {
    const size_t room = metal_device_room(device);
    if (size > device->max_buffer)
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: %zu bytes are more than a buffer has",
                             size);
    if (size > room)
        return ggml_sdk_fail(
            GGML_HOST_OUT_OF_MEMORY,
            "metal: %zu bytes are more than the %zu that are left of %zu, which the "
            "system recommends as the most",
            size, room, device->memory);
    return GGML_HOST_OK;
}

// Private memory in whole units that it is filled and copied by.
static int32_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    const struct metal_device *device = buft->context;
    const mtl_word storage = device->unified ? MTL_STORAGE_SHARED : MTL_STORAGE_PRIVATE;
    const size_t whole = (size + 15) / 16 * 16;
    const enum ggml_host_status status = check_size(device, size);
    if (status != GGML_HOST_OK) return status;
    struct metal_buffer *buffer = buffer_new(buft->context, size);
    if (!buffer) return GGML_HOST_FAILED;
    void *pool = mtl_api.pool_push();
    const bool made =
        add_window(buffer, mtl_new_buffer(buffer->context->device, whole, storage), 0, whole);
    mtl_api.pool_pop(pool);
    const struct metal_window *w = &buffer->windows[0];
    buffer->base = w->contents ? (uintptr_t)w->contents : w->address;
    return buffer_finish(buffer, buft, made, out_buffer);
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

// --- memory of the application's -----------------------------------------------------------------

// Windows as large as the device's buffers may be, each beginning so far before the last one's end
// that a tensor of max_tensor_size lies wholly in one of them.
static bool add_windows(struct metal_buffer *buffer, char *memory, size_t page, size_t max_window,
                        size_t max_tensor_size) {
    const size_t overlap = (max_tensor_size + page - 1) / page * page + page;
    size_t begin = 0;
    for (; buffer->n_windows < METAL_MAX_WINDOWS; begin += max_window - overlap) {
        const size_t left = buffer->size - begin, size = MIN(left, max_window);
        const mtl_id handle =
            mtl_new_buffer_no_copy(buffer->context->device, memory + begin,
                                   (size + page - 1) / page * page, MTL_STORAGE_SHARED, NULL);
        if (!add_window(buffer, handle, begin, size)) return false;
        if (size == left) return true;
        if (overlap >= max_window) return false;
    }
    return false;
}

// Metal takes whole pages: the last one is shown to its end, although the buffer may end before.
int32_t metal_buffer_from_host(ggml_backend_dev_t handle, void *memory, size_t size,
                               size_t max_tensor_size, ggml_backend_buffer_t *out_buffer) {
    struct metal_device *device = metal_device_of(handle);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!device->unified) return GGML_HOST_UNSUPPORTED;
    if ((uintptr_t)memory % page != 0)
        return ggml_sdk_fail(
            GGML_HOST_INVALID_ARGUMENT,
            "metal: memory of the application's has to begin with a page (%zu bytes)", page);
    const size_t room = metal_device_room(device);
    if (size > room)
        GGML_LOG_WARN("metal: %zu bytes of the application's are more than the %zu that %s should "
                      "have: Metal will move memory in and out\n",
                      size, room, device->name);
    struct metal_buffer *buffer = buffer_new(device, size);
    if (!buffer) return GGML_HOST_FAILED;
    buffer->base = (uintptr_t)memory;
    void *pool = mtl_api.pool_push();
    const bool made = add_windows(buffer, memory, page, device->max_buffer / page * page,
                                  MIN(max_tensor_size, size));
    mtl_api.pool_pop(pool);
    return buffer_finish(buffer, &device->buft, made, out_buffer);
}
