// SPDX-License-Identifier: MIT
// The host's own memory as buffer types: singletons that belong to no device.
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "device/check.h"
#include "ggml-impl.h"
#include "machine/topology/numa.h"

enum { BLOCK_ALIGNMENT = 64 }; // a cache line, and the widest vector

static void memory_free(ggml_backend_buffer_t buffer) {
    ggml_mem_aligned_free(buffer->context);
    ggml_sdk_buffer_free(buffer);
}

static void *memory_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

static int32_t memory_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    (void)buffer;
    memset((char *)tensor->data + offset, value, size);
    return GGML_HOST_OK;
}

// memmove() here and below: source and destination may be in the same buffer.
static int32_t memory_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    (void)buffer;
    memmove((char *)tensor->data + offset, data, size);
    return GGML_HOST_OK;
}

static int32_t memory_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    (void)buffer;
    memmove(data, (const char *)tensor->data + offset, size);
    return GGML_HOST_OK;
}

// From any memory that the host can read, no matter which plugin it belongs to.
static int32_t memory_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    (void)buffer;
    if (!ggml_backend_buffer_is_host(device_tensor_buffer(src))) return GGML_HOST_UNSUPPORTED;
    memmove(dst->data, src->data, ggml_nbytes(src));
    return GGML_HOST_OK;
}

static int32_t memory_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(buffer->context, value, buffer->size);
    return GGML_HOST_OK;
}

#define MEMORY_ENTRIES                                                                             \
    .size = sizeof(struct ggml_buffer_table), .get_base = memory_base,                             \
    .memset_tensor = memory_memset, .set_tensor = memory_set, .get_tensor = memory_get,            \
    .cpy_tensor = memory_copy, .clear = memory_clear

static const struct ggml_buffer_table owned_table = {MEMORY_ENTRIES, .free = memory_free};
// The caller keeps ownership of the memory.
static const struct ggml_buffer_table mapped_table = {MEMORY_ENTRIES, .free = ggml_sdk_buffer_free};

// One allocation per buffer; the type has no limit but memory.
static int32_t type_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    void *memory = ggml_mem_aligned_alloc(BLOCK_ALIGNMENT, size);
    if (!memory)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a host buffer of %zu bytes", size);
    ggml_numa_spread(memory, size);
    *out_buffer = ggml_sdk_buffer_new(buft, &owned_table, memory, size);
    if (*out_buffer) return GGML_HOST_OK;
    ggml_mem_aligned_free(memory);
    return GGML_HOST_OUT_OF_MEMORY;
}

// Alignment of tensors within a buffer; the buffers themselves are aligned more strictly.
static size_t type_alignment(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return TENSOR_ALIGNMENT;
}

static bool type_is_host(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return true;
}

static const char *type_name(ggml_backend_buffer_type_t buft) {
    return buft->context;
}

static const struct ggml_buffer_type_table type_table = {
    .size = sizeof(type_table),
    .get_name = type_name,
    .alloc_buffer = type_alloc,
    .get_alignment = type_alignment,
    .is_host = type_is_host,
};

static struct ggml_backend_buffer_type cpu_type = {.table = &type_table, .context = "CPU"};
static struct ggml_backend_buffer_type mapped_type = {.table = &type_table,
                                                      .context = "CPU_Mapped"};

ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void) {
    return &cpu_type;
}

// For files that are mapped and memory that the application owns: it has to outlive the buffer.
ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size) {
    if (!device_require_arg(ptr, __func__, "pointer")) return NULL;
    if ((uintptr_t)ptr % TENSOR_ALIGNMENT != 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %p is not aligned to %d bytes", __func__, ptr,
                  TENSOR_ALIGNMENT);
        return NULL;
    }
    return ggml_sdk_buffer_new(&mapped_type, &mapped_table, ptr, size);
}
