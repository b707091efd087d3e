// SPDX-License-Identifier: MIT
// Buffers: addresses that fault, and the bytes behind them elsewhere.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include "internal.h"

enum { STORAGE_ALIGNMENT = VIRTUAL_MAX_ALIGNMENT }; // host memory is what tensors see

struct attached { // to a tensor that was placed, until the buffer is reset
    struct attached *next;
    const void *data; // of the tensor
};

struct memory {
    struct virtual_device *device;
    char *base;    // what tensors see
    char *storage; // what is computed on
    size_t size;
    bool is_reserved; // base is an address range of its own
    bool is_imported; // the storage is the caller's
    struct attached *attached;
    int64_t n_attached;
};

static const struct ggml_buffer_table buffer_table;
static const char *buft_name(ggml_backend_buffer_type_t buft);

bool memory_type_is_mine(ggml_backend_buffer_type_t buft) {
    return buft && buft->table->get_name == buft_name;
}

static struct memory *memory_of(const struct ggml_tensor *tensor) {
    ggml_backend_buffer_t buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    return buffer && memory_type_is_mine(buffer->buft) ? buffer->context : NULL;
}

struct virtual_device *memory_device(const struct ggml_tensor *tensor) {
    const struct memory *memory = memory_of(tensor);
    return memory ? memory->device : NULL;
}

static bool is_host(const struct ggml_tensor *tensor) {
    ggml_backend_buffer_t buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    return !buffer || (buffer->buft->table->is_host && buffer->buft->table->is_host(buffer->buft));
}

// Whether work of the device may touch the tensor where it is.
static bool reaches(struct virtual_device *device, const struct memory *memory,
                    const struct ggml_tensor *tensor) {
    if (!device || (memory && memory->device == device)) return true;
    const struct virtual_config config = device_config(device);
    return (memory && config.reads_peers) || (config.reads_host && is_host(tensor));
}

// Whether init_tensor has attached to this tensor what it should have.
static bool is_attached(const struct memory *memory, const struct ggml_tensor *tensor) {
    const struct attached *item = memory->attached;
    if (device_config(memory->device).attaches == 0) return true;
    while (item && item != tensor->extra)
        item = item->next;
    const bool is_shared = tensor->view_src && device_config(memory->device).shares_attached;
    return item && item->data == (is_shared ? tensor->view_src->data : tensor->data);
}

char *memory_resolve(struct virtual_device *device, const struct ggml_tensor *tensor, size_t offset,
                     size_t size) {
    const struct memory *memory = memory_of(tensor);
    const int index = device ? device->index : memory ? memory->device->index : -1;
    if (!reaches(device, memory, tensor)) {
        log_violation(index, "tensor '%s' is not in memory of the device", tensor->name);
        return NULL;
    }
    if (!memory) return (char *)tensor->data + offset;
    if (!is_attached(memory, tensor)) {
        log_violation(index, "tensor '%s' has not what init_tensor attached", tensor->name);
        return NULL;
    }
    const char *data = tensor->data;
    const size_t start = (size_t)(data - memory->base);
    if (data < memory->base || start > memory->size || offset > memory->size - start ||
        size > memory->size - start - offset) {
        log_violation(index, "tensor '%s' leaves its buffer", tensor->name);
        return NULL;
    }
    return memory->storage + start + offset;
}

void sleep_ns(int64_t nanoseconds) {
    if (nanoseconds <= 0) return;
    const struct timespec time = {(time_t)(nanoseconds / 1000000000),
                                  (long)(nanoseconds % 1000000000)};
    nanosleep(&time, NULL);
}

static int64_t transfer_ns(struct virtual_device *device, size_t bytes) {
    const struct virtual_config config = device_config(device);
    return config.copy_delay_us * 1000 + config.copy_ns_per_kib * (int64_t)(bytes / 1024);
}

void memory_delay(struct virtual_device *device, struct virtual_device *peer, size_t bytes) {
    const int64_t ns = transfer_ns(device, bytes);
    const int64_t peer_ns = peer ? transfer_ns(peer, bytes) : 0;
    sleep_ns(MAX(ns, peer_ns));
}

// --- blocking transfers --------------------------------------------------------------------------

struct access {
    enum virtual_call call;
    struct memory *memory;
    const struct ggml_tensor *tensor;
    size_t offset, span, bytes;
    struct virtual_device *peer;
};

// What blocking calls have in common: the gate, the log, the check for races. NULL: must not go on.
static char *access_begin(const struct access *access, struct hazard *hazard,
                          struct hazard_range *range, uint64_t *out_ticket) {
    struct virtual_device *device = access->memory->device;
    struct virtual_record record = {
        .call = access->call, .device = device->index, .peer = -1, .bytes = access->bytes};
    snprintf(record.text, sizeof(record.text), "%s", access->tensor->name);
    *out_ticket = log_add(record);
    log_begin(*out_ticket);
    char *data = memory_resolve(NULL, access->tensor, access->offset, access->span);
    const enum ggml_status status = data ? device_gate(device, GATE_COPY) : GGML_STATUS_FAILED;
    if (status != GGML_STATUS_SUCCESS) {
        log_end(*out_ticket, status);
        return NULL;
    }
    *range = (struct hazard_range){data, data + access->span, access->call != VIRTUAL_CALL_GET};
    *hazard = (struct hazard){.ranges = range, .n_ranges = 1, .device = device->index};
    snprintf(hazard->name, sizeof(hazard->name), "%.40s", access->tensor->name);
    hazard_queue(hazard);
    hazard_start(hazard);
    memory_delay(device, access->peer, access->bytes);
    return data;
}

static void access_end(struct hazard *hazard, uint64_t ticket) {
    hazard_done(hazard);
    log_end(ticket, GGML_STATUS_SUCCESS);
}

static int32_t buffer_set_2d(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             const void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    struct hazard hazard;
    struct hazard_range range;
    uint64_t ticket;
    const struct access access = {VIRTUAL_CALL_SET,
                                  buffer->context,
                                  tensor,
                                  offset,
                                  (n_copies - 1) * stride_tensor + size,
                                  n_copies * size,
                                  NULL};
    if (buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS &&
        device_config(access.memory->device).fixed_weights) {
        ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "%s: weights are fixed",
                      access.memory->device->name);
        return GGML_HOST_INVALID_ARGUMENT;
    }
    char *dst = access_begin(&access, &hazard, &range, &ticket);
    if (!dst) return GGML_HOST_FAILED;
    const struct transfer transfer = {dst, data, size, n_copies, stride_tensor, stride_data, NULL};
    transfer_run(&transfer);
    access_end(&hazard, ticket);
    return GGML_HOST_OK;
}

static int32_t buffer_get_2d(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                             void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    struct hazard hazard;
    struct hazard_range range;
    uint64_t ticket;
    const struct access access = {VIRTUAL_CALL_GET,
                                  buffer->context,
                                  tensor,
                                  offset,
                                  (n_copies - 1) * stride_tensor + size,
                                  n_copies * size,
                                  NULL};
    const char *src = access_begin(&access, &hazard, &range, &ticket);
    if (!src) return GGML_HOST_FAILED;
    const struct transfer transfer = {data, src, size, n_copies, stride_data, stride_tensor, NULL};
    transfer_run(&transfer);
    access_end(&hazard, ticket);
    return GGML_HOST_OK;
}

static int32_t buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    return buffer_set_2d(buffer, tensor, data, offset, size, 1, 0, 0);
}

static int32_t buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    return buffer_get_2d(buffer, tensor, data, offset, size, 1, 0, 0);
}

static int32_t buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    struct hazard hazard;
    struct hazard_range range;
    uint64_t ticket;
    const struct access access = {
        VIRTUAL_CALL_MEMSET, buffer->context, tensor, offset, size, size, NULL};
    char *dst = access_begin(&access, &hazard, &range, &ticket);
    if (!dst) return GGML_HOST_FAILED;
    memset(dst, value, size);
    access_end(&hazard, ticket);
    return GGML_HOST_OK;
}

static int32_t buffer_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    struct hazard hazard;
    struct hazard_range range;
    uint64_t ticket;
    const struct memory *from = memory_of(src);
    struct memory *memory = buffer->context;
    if (!from) return GGML_HOST_UNSUPPORTED;
    if (from->device != memory->device &&
        (!device_config(from->device).peer_copy || !device_config(memory->device).peer_copy)) {
        return GGML_HOST_UNSUPPORTED;
    }
    const size_t bytes = ggml_nbytes(dst);
    const char *data = memory_resolve(NULL, src, 0, bytes);
    const struct access access = {VIRTUAL_CALL_COPY, memory, dst, 0, bytes, bytes, from->device};
    char *target = data ? access_begin(&access, &hazard, &range, &ticket) : NULL;
    if (!target) return GGML_HOST_FAILED;
    memmove(target, data, bytes);
    access_end(&hazard, ticket);
    return GGML_HOST_OK;
}

// --- buffers -------------------------------------------------------------------------------------

static int32_t buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    struct memory *memory = buffer->context;
    if (hazard_touches(memory->storage, memory->size)) {
        log_violation(memory->device->index, "a buffer is cleared while queued work touches it");
    }
    log_once(VIRTUAL_CALL_CLEAR, memory->device->index, 0, memory->size, "");
    if (device_gate(memory->device, GATE_COPY) != GGML_STATUS_SUCCESS) return GGML_HOST_FAILED;
    memset(memory->storage, value, memory->size);
    return GGML_HOST_OK;
}

static char *storage_new(size_t size) {
    const struct ggml_host_table *host = ggml_sdk_host();
    return host->alloc(host, size, STORAGE_ALIGNMENT);
}

static void storage_free(char *storage) {
    const struct ggml_host_table *host = ggml_sdk_host();
    if (storage) host->free(host, storage);
}

static void detach_all(struct memory *memory) {
    while (memory->attached) {
        struct attached *next = memory->attached->next;
        ggml_aligned_free(memory->attached, sizeof(*memory->attached));
        memory->attached = next;
    }
    memory->n_attached = 0;
}

static void memory_free(struct memory *memory) {
    struct virtual_device *device = memory->device;
    detach_all(memory);
    if (memory->is_reserved) space_release(memory->base, memory->size);
    if (!memory->is_imported) {
        storage_free(memory->storage);
        pthread_mutex_lock(&device->mutex);
        device->used -= memory->size;
        pthread_mutex_unlock(&device->mutex);
    }
    ggml_aligned_free(memory, sizeof(*memory));
}

static void buffer_free(ggml_backend_buffer_t buffer) {
    struct memory *memory = buffer->context;
    if (hazard_touches(memory->storage, memory->size)) {
        log_violation(memory->device->index, "a buffer is freed while queued work touches it");
    }
    log_once(VIRTUAL_CALL_FREE, memory->device->index, 0, memory->size, "");
    memory_free(memory);
    ggml_sdk_buffer_free(buffer);
}

static void *buffer_base(ggml_backend_buffer_t buffer) {
    return ((struct memory *)buffer->context)->base;
}

static int32_t attach(struct memory *memory, struct ggml_tensor *tensor) {
    const int64_t most = device_config(memory->device).attaches;
    if (most == 0) return GGML_HOST_OK;
    if (tensor->view_src && device_config(memory->device).shares_attached) {
        tensor->extra = tensor->view_src->extra;
        return GGML_HOST_OK;
    }
    struct attached *item = memory->n_attached < most ? ggml_aligned_malloc(sizeof(*item)) : NULL;
    if (!item) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "%s: too much is attached", memory->device->name);
        return GGML_HOST_OUT_OF_MEMORY;
    }
    *item = (struct attached){memory->attached, tensor->data};
    memory->attached = item;
    ++memory->n_attached;
    tensor->extra = item;
    return GGML_HOST_OK;
}

// As devices do that clear what lies between rows: the tensor has no contents yet.
static void prepare(struct memory *memory, const struct ggml_tensor *tensor) {
    const int64_t placing_us = device_config(memory->device).placing_us;
    if (placing_us == 0 || tensor->view_src) return;
    sleep_ns(placing_us * 1000);
    memset(memory->storage + ((const char *)tensor->data - memory->base), 0xff,
           ggml_nbytes(tensor));
}

static int32_t buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    struct memory *memory = buffer->context;
    const size_t alignment = buffer->buft->table->get_alignment(buffer->buft);
    if (!tensor->view_src && ((uintptr_t)tensor->data - (uintptr_t)memory->base) % alignment != 0) {
        log_violation(memory->device->index, "tensor '%s' is not aligned to %zu", tensor->name,
                      alignment);
        return GGML_HOST_INVALID_ARGUMENT;
    }
    prepare(memory, tensor);
    return attach(memory, tensor);
}

static int32_t buffer_reset(ggml_backend_buffer_t buffer) {
    detach_all(buffer->context);
    return GGML_HOST_OK;
}

static const struct ggml_buffer_table buffer_table = {
    .size = sizeof(buffer_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .init_tensor = buffer_init_tensor,
    .memset_tensor = buffer_memset,
    .set_tensor = buffer_set,
    .get_tensor = buffer_get,
    .set_tensor_2d = buffer_set_2d,
    .get_tensor_2d = buffer_get_2d,
    .cpy_tensor = buffer_copy,
    .clear = buffer_clear,
    .reset = buffer_reset,
};

static bool take(struct virtual_device *device, size_t size) {
    pthread_mutex_lock(&device->mutex);
    const size_t total = (size_t)device->config.memory;
    const size_t limit = device->config.max_buffer ? (size_t)device->config.max_buffer : SIZE_MAX;
    const bool fits = size <= limit && device->used <= total && size <= total - device->used;
    if (fits) device->used += size;
    pthread_mutex_unlock(&device->mutex);
    if (!fits) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no room for a buffer of %zu bytes",
                      device->name, size);
    }
    return fits;
}

// storage NULL: memory of its own, counted already.
static ggml_backend_buffer_t make_buffer(struct virtual_device *device,
                                         ggml_backend_buffer_type_t buft, size_t size,
                                         void *storage) {
    const bool poison = device_config(device).poison && !storage;
    struct memory *memory = ggml_aligned_malloc(sizeof(*memory));
    ggml_backend_buffer_t buffer = NULL;
    if (!memory) return NULL;
    *memory = (struct memory){.device = device, .size = size, .is_imported = storage != NULL};
    memory->storage = storage ? storage : storage_new(size);
    memory->is_reserved = !buft->table->is_host(buft);
    memory->base = memory->is_reserved ? space_reserve(size) : memory->storage;
    if (!memory->storage || !memory->base) goto fail;
    if (poison) memset(memory->storage, 0xff, size);
    buffer = ggml_sdk_buffer_new(buft, &buffer_table, memory, size);
    if (buffer) return buffer;
fail:
    ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory of the host for %zu bytes", device->name,
                  size);
    if (memory->is_reserved) space_release(memory->base, size);
    if (!storage) storage_free(memory->storage);
    ggml_aligned_free(memory, sizeof(*memory));
    return NULL;
}

static int32_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    struct virtual_device *device = virtual_device_of(buft->device);
    struct virtual_record record = {
        .call = VIRTUAL_CALL_ALLOC, .device = device->index, .peer = -1, .bytes = size};
    const uint64_t ticket = log_add(record);
    ggml_backend_buffer_t buffer = NULL;
    log_begin(ticket);
    if (device_gate(device, GATE_ALLOC) == GGML_STATUS_SUCCESS && take(device, size)) {
        buffer = make_buffer(device, buft, size, NULL);
        if (!buffer) {
            pthread_mutex_lock(&device->mutex);
            device->used -= size;
            pthread_mutex_unlock(&device->mutex);
        }
    }
    log_end(ticket, buffer ? GGML_STATUS_SUCCESS : GGML_STATUS_ALLOC_FAILED);
    *out_buffer = buffer;
    return buffer ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

ggml_backend_buffer_t memory_import(struct virtual_device *device, void *ptr, size_t size) {
    if (!device_config(device).host_import) {
        ggml_sdk_fail(GGML_HOST_UNSUPPORTED, "%s: does not import host memory", device->name);
        return NULL;
    }
    if (device_gate(device, GATE_ALLOC) != GGML_STATUS_SUCCESS) return NULL;
    return make_buffer(device, &device->buft, size, ptr);
}

// --- buffer types --------------------------------------------------------------------------------

static const char *buft_name(ggml_backend_buffer_type_t buft) {
    struct virtual_device *device = buft->context;
    return buft == &device->buft ? device->name : device->host_name;
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    const int64_t alignment = device_config(buft->context).alignment;
    return (size_t)MAX(1, MIN(alignment, VIRTUAL_MAX_ALIGNMENT));
}

static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    const int64_t size = device_config(buft->context).max_buffer;
    return size > 0 ? (size_t)size : SIZE_MAX;
}

static size_t buft_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    return ggml_nbytes(tensor) + (size_t)device_config(buft->context).padding;
}

static size_t buft_access_unit(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    const int64_t unit = device_config(buft->context).unit;
    (void)tensor;
    return unit > 0 ? (size_t)unit : SIZE_MAX;
}

static bool buft_is_host(ggml_backend_buffer_type_t buft) {
    struct virtual_device *device = buft->context;
    return buft == &device->host_buft || device_config(device).host_memory;
}

static const struct ggml_buffer_type_table buft_table = {
    .size = sizeof(buft_table),
    .get_name = buft_name,
    .alloc_buffer = buft_alloc,
    .get_alignment = buft_alignment,
    .get_max_size = buft_max_size,
    .get_alloc_size = buft_alloc_size,
    .is_host = buft_is_host,
    .get_access_unit = buft_access_unit,
};

void memory_init_types(struct virtual_device *device) {
    device->buft = (struct ggml_backend_buffer_type){
        .table = &buft_table, .device = &device->base, .context = device};
    device->host_buft = device->buft;
    snprintf(device->host_name, sizeof(device->host_name), "%s_Host", device->name);
}
