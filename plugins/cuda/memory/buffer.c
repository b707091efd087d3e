// SPDX-License-Identifier: MIT
// Device memory is addressed as the driver does: tensor->data holds a device address, which the
// host never reads. Transfers of buffers wait until they are done; those of streams only queue.
#include "memory/buffer.h"

#include "device/loader.h"
#include "gpu/base/tables.h"
#include "memory/budget.h"

// Bytes. cuMemAlloc aligns to 256; operands that begin so are read in whole sectors of 32 bytes and
// lines of 128.
enum { ALIGNMENT = 256 };

// --- memory of the device ------------------------------------------------------------------------

// By the first kind that fits: a buffer has memory of one kind, and one that failed half-way has
// what was made until then.
static void give_back(struct cuda_buffer *buffer) {
    const struct cu_api *api = cuda_api();
    struct cuda_context *context = buffer->context;
    if (buffer->is_callers) {
        api->cuMemHostUnregister(buffer->host);
    } else if (buffer->host) {
        api->cuMemFreeHost(buffer->host);
    } else if (buffer->piece) {
        cuda_pool_give_back(context, buffer->piece);
    } else if (buffer->external) {
        if (buffer->base) api->cuMemFree(buffer->base);
        api->cuDestroyExternalMemory(buffer->external);
    } else if (buffer->range.reserved > 0 || buffer->has_memory) {
        cuda_range_close(context, &buffer->range, buffer->budgeted);
        if (buffer->has_memory) api->cuMemRelease(buffer->memory);
    } else if (buffer->base) {
        cuda_memory_free(context, buffer->base, buffer->budgeted);
    } else {
        cuda_budget_return(context, buffer->budgeted);
    }
}

// Work that is queued may still use it. In a child of the process nothing is done: the memory is
// the parent's.
void cuda_buffer_release(struct cuda_buffer *buffer) {
    const struct cu_api *api = cuda_api();
    // The driver's state is the parent's after a fork: each call there fails or hangs. So the
    // memory is left to the parent, which frees it when it ends.
    if (cuda_in_owner() && api->cuCtxPushCurrent(buffer->context->handle) == CUDA_SUCCESS) {
        api->cuCtxSynchronize();
        give_back(buffer);
        cuda_context_leave();
    }
    ggml_aligned_free(buffer, sizeof(*buffer));
}

static void device_free(ggml_backend_buffer_t handle) {
    cuda_buffer_release(handle->context);
    ggml_sdk_buffer_free(handle);
}

static void *device_base(ggml_backend_buffer_t handle) {
    return (void *)(uintptr_t)((struct cuda_buffer *)handle->context)->base;
}

struct cuda_buffer *cuda_buffer_of(const struct ggml_tensor *tensor) {
    const ggml_backend_buffer_t owner = gpu_buffer_of(tensor);
    return owner ? cuda_buffer_from(owner) : NULL;
}

struct cuda_buffer *cuda_buffer_from(ggml_backend_buffer_t handle) {
    return handle->table->free == device_free ? handle->context : NULL;
}

CUresult cuda_copy(CUdeviceptr to, const struct cuda_context *context_to, CUdeviceptr from,
                   const struct cuda_context *context_from, size_t size, CUstream stream) {
    const struct cu_api *api = cuda_api();
    if (context_to == context_from) return api->cuMemcpyDtoDAsync(to, from, size, stream);
    return api->cuMemcpyPeerAsync(to, context_to->handle, from, context_from->handle, size, stream);
}

// One blocking transfer: the stream is the context's own and idle between calls.
// Strides are bytes between the beginnings of pieces; FILL and COPY have one piece.
struct transfer {
    enum { SET, GET, FILL, COPY } kind;
    CUdeviceptr to, from;
    const struct cuda_context *context_to, *context_from; // of COPY
    void *host;
    size_t size, n, stride_device, stride_host;
    uint8_t value;
};

// The driver copies pinned memory by the copy engine while the host goes on; pageable memory it
// copies through a staging buffer of its own, before or after the call returns.
static CUresult queue_piece(const struct transfer *t, size_t i, CUstream stream) {
    const struct cu_api *api = cuda_api();
    char *host = t->host ? (char *)t->host + i * t->stride_host : NULL; // FILL and COPY have none
    const size_t at = i * t->stride_device;
    switch (t->kind) {
    case SET: return api->cuMemcpyHtoDAsync(t->to + at, host, t->size, stream);
    case GET: return api->cuMemcpyDtoHAsync(host, t->from + at, t->size, stream);
    case FILL: return api->cuMemsetD8Async(t->to + at, t->value, t->size, stream);
    default: return cuda_copy(t->to, t->context_to, t->from, t->context_from, t->size, stream);
    }
}

// The context's mutex makes pieces of two threads not mix: both share the one stream for transfers.
// It is held until the device is done, since the stream's end is what is waited for.
static int32_t run_transfer(struct cuda_context *context, const struct transfer *t) {
    enum ggml_host_status status = cuda_context_enter(context);
    if (status != GGML_HOST_OK) return status;
    pthread_mutex_lock(&context->mutex);
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < t->n && result == CUDA_SUCCESS && t->size > 0; ++i)
        result = queue_piece(t, i, context->transfers);
    // What was queued before a failure must not go on behind the caller's back.
    const CUresult waited = cuda_api()->cuStreamSynchronize(context->transfers);
    pthread_mutex_unlock(&context->mutex);
    status = cuda_context_check(context, result != CUDA_SUCCESS ? result : waited, "a transfer");
    cuda_context_leave();
    return status;
}

// tensor->data is an address of the device; arithmetic on it as an integer is all the host does.
static CUdeviceptr address(const struct ggml_tensor *tensor, size_t offset) {
    return (CUdeviceptr)(uintptr_t)tensor->data + offset;
}

static int32_t device_memset(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    const struct transfer t = {
        .kind = FILL, .to = address(tensor, offset), .size = size, .n = 1, .value = value};
    return run_transfer(((struct cuda_buffer *)handle->context)->context, &t);
}

static int32_t device_set_2d(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                             const void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    const struct transfer t = {.kind = SET,
                               .to = address(tensor, offset),
                               .host = (void *)(uintptr_t)data,
                               .size = size,
                               .n = n_copies,
                               .stride_device = stride_tensor,
                               .stride_host = stride_data};
    return run_transfer(((struct cuda_buffer *)handle->context)->context, &t);
}

static int32_t device_get_2d(ggml_backend_buffer_t handle, const struct ggml_tensor *tensor,
                             void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    const struct transfer t = {.kind = GET,
                               .from = address(tensor, offset),
                               .host = data,
                               .size = size,
                               .n = n_copies,
                               .stride_device = stride_tensor,
                               .stride_host = stride_data};
    return run_transfer(((struct cuda_buffer *)handle->context)->context, &t);
}

// Also from another device. The core goes through the host where the ranges overlap: cuMemcpyDtoD
// leaves the order of its reads and writes open.
static int32_t device_copy(ggml_backend_buffer_t handle, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    struct cuda_buffer *buffer = handle->context;
    const struct cuda_buffer *from = cuda_buffer_of(src);
    if (!from) return GGML_HOST_UNSUPPORTED;
    const struct transfer t = {.kind = COPY,
                               .to = address(dst, 0),
                               .from = address(src, 0),
                               .context_to = buffer->context,
                               .context_from = from->context,
                               .size = ggml_nbytes(dst),
                               .n = 1};
    if (from->context == buffer->context && t.from < t.to + t.size && t.to < t.from + t.size)
        return GGML_HOST_UNSUPPORTED;
    return run_transfer(buffer->context, &t);
}

static int32_t device_clear(ggml_backend_buffer_t handle, uint8_t value) {
    struct cuda_buffer *buffer = handle->context;
    const struct transfer t = {
        .kind = FILL, .to = buffer->base, .size = buffer->size, .n = 1, .value = value};
    return run_transfer(buffer->context, &t);
}

static const struct ggml_buffer_table device_buffer_table = {
    .size = sizeof(device_buffer_table),
    .free = device_free,
    .get_base = device_base,
    .memset_tensor = device_memset,
    .set_tensor = gpu_buffer_set,
    .get_tensor = gpu_buffer_get,
    .set_tensor_2d = device_set_2d,
    .get_tensor_2d = device_get_2d,
    .cpy_tensor = device_copy,
    .clear = device_clear,
};

// --- pinned memory of the host -------------------------------------------------------------------

static void host_free(ggml_backend_buffer_t handle) {
    cuda_buffer_release(handle->context);
    ggml_sdk_buffer_free(handle);
}

static void *host_base(ggml_backend_buffer_t handle) {
    return ((struct cuda_buffer *)handle->context)->host;
}

// Pinned memory is the host's to read and write at any time: no call of the driver is needed.
static const struct ggml_buffer_table host_buffer_table = {
    .size = sizeof(host_buffer_table),
    .free = host_free,
    .get_base = host_base,
    .memset_tensor = gpu_host_memset,
    .set_tensor = gpu_host_set,
    .get_tensor = gpu_host_get,
    .clear = gpu_host_clear,
};

// --- types ---------------------------------------------------------------------------------------

// The two types of a device share a table and are told apart by their address.
static bool is_host(ggml_backend_buffer_type_t buft) {
    return buft != &((struct cuda_device *)buft->context)->base.buft;
}

struct cuda_buffer *cuda_buffer_new(struct cuda_context *context, size_t size) {
    static atomic_uint_fast64_t n_buffers;
    struct cuda_buffer *buffer = ggml_aligned_malloc(sizeof(*buffer));
    if (buffer)
        *buffer = (struct cuda_buffer){
            .context = context, .size = size, .id = atomic_fetch_add(&n_buffers, 1) + 1};
    return buffer;
}

int32_t cuda_buffer_wrap(struct cuda_device *device, struct cuda_buffer *buffer,
                         ggml_backend_buffer_t *out_buffer) {
    *out_buffer =
        ggml_sdk_buffer_new(&device->base.buft, &device_buffer_table, buffer, buffer->size);
    if (*out_buffer) return GGML_HOST_OK;
    cuda_buffer_release(buffer);
    return GGML_HOST_OUT_OF_MEMORY;
}

// Of the pool, or an allocation of its own.
static enum ggml_host_status allocate_device(struct cuda_buffer *buffer) {
    const size_t bytes = (buffer->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    enum ggml_host_status status = cuda_pool_take(buffer->context, bytes, &buffer->piece);
    if (status == GGML_HOST_OK) buffer->base = buffer->piece->begin;
    if (status != GGML_HOST_UNSUPPORTED) return status;
    status = cuda_memory_new(buffer->context, buffer->size, &buffer->base);
    if (status == GGML_HOST_OK) buffer->budgeted = buffer->size;
    return status;
}

// Pinned memory is page-locked and mapped for the device: fast to copy, taken from all programs.
static enum ggml_host_status allocate(struct cuda_buffer *buffer, bool host) {
    enum ggml_host_status status = cuda_context_enter(buffer->context);
    if (status != GGML_HOST_OK) return status;
    status = host ? cuda_context_check(buffer->context,
                                       cuda_api()->cuMemHostAlloc(&buffer->host, buffer->size, 0),
                                       "cuMemHostAlloc")
                  : allocate_device(buffer);
    cuda_context_leave();
    return status;
}

// The driver pins whole pages; memory that can only be read, or that somebody registered before, it
// refuses.
int32_t cuda_buffer_from_host(struct cuda_device *device, void *ptr, size_t size,
                              ggml_backend_buffer_t *out_buffer) {
    if (!device->registers) return GGML_HOST_UNSUPPORTED;
    struct cuda_context *context = cuda_device_context(device);
    if (!context) return GGML_HOST_FAILED;
    enum ggml_host_status status = cuda_context_enter(context);
    if (status != GGML_HOST_OK) return status;
    const CUresult result = cuda_api()->cuMemHostRegister(ptr, size, 0);
    status = cuda_context_check(context, result, "cuMemHostRegister");
    cuda_context_leave();
    if (status != GGML_HOST_OK) return status;
    struct cuda_buffer *buffer = cuda_buffer_new(context, size);
    if (buffer) {
        buffer->host = ptr;
        buffer->is_callers = true;
        *out_buffer =
            ggml_sdk_buffer_new(&device->base.host_buft, &host_buffer_table, buffer, size);
        if (*out_buffer) return GGML_HOST_OK;
        cuda_buffer_release(buffer);
    } else if (cuda_context_enter(context) == GGML_HOST_OK) {
        cuda_api()->cuMemHostUnregister(ptr);
        cuda_context_leave();
    }
    return GGML_HOST_OUT_OF_MEMORY;
}

// Cores allocate few buffers, most of them large.
static int32_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    const bool host = is_host(buft);
    struct cuda_context *context = cuda_device_context(buft->context);
    if (!context) return GGML_HOST_FAILED;
    if (size > buft->table->get_max_size(buft))
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "cuda: %zu bytes are more than there can be",
                             size);
    struct cuda_buffer *buffer = cuda_buffer_new(context, size);
    if (!buffer) return GGML_HOST_OUT_OF_MEMORY;
    const enum ggml_host_status status = allocate(buffer, host);
    if (status != GGML_HOST_OK) {
        ggml_aligned_free(buffer, sizeof(*buffer));
        return status;
    }
    if (!host) return cuda_buffer_wrap(buft->context, buffer, out_buffer);
    *out_buffer = ggml_sdk_buffer_new(buft, &host_buffer_table, buffer, size);
    if (*out_buffer) return GGML_HOST_OK;
    cuda_buffer_release(buffer);
    return GGML_HOST_OUT_OF_MEMORY;
}

static const char *buft_name(ggml_backend_buffer_type_t buft) {
    const struct cuda_device *device = buft->context;
    return is_host(buft) ? device->base.host_name : device->base.name;
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return ALIGNMENT;
}

// A single allocation can be as large as the memory; what is free is the driver's to say.
static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    return is_host(buft) ? SIZE_MAX / 2 : ((struct cuda_device *)buft->context)->memory;
}

static const struct ggml_buffer_type_table buft_table = {
    .size = sizeof(buft_table),
    .get_name = buft_name,
    .alloc_buffer = buft_alloc,
    .get_alignment = buft_alignment,
    .get_max_size = buft_max_size,
    .is_host = is_host,
};

void cuda_buffer_types_init(struct cuda_device *device, ggml_backend_reg_t reg, int number) {
    gpu_device_init(&device->base, &cuda_device_table, reg, &buft_table, "CUDA", number);
}
