// SPDX-License-Identifier: MIT
// The host's own memory as buffer types: singletons that belong to no device.
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "device/check.h"
#include "ggml-impl.h"

enum { BLOCK_ALIGNMENT = 64 }; // a cache line, and the widest vector

static void memory_free(ggml_backend_buffer_t buffer) {
    ggml_mem_aligned_free(buffer->context);
}

static void *memory_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

static void memory_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value,
                          size_t offset, size_t size) {
    (void)buffer;
    memset((char *)tensor->data + offset, value, size);
}

static void memory_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size) {
    (void)buffer;
    memmove((char *)tensor->data + offset, data, size);
}

static void memory_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size) {
    (void)buffer;
    memmove(data, (const char *)tensor->data + offset, size);
}

static bool memory_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                        struct ggml_tensor *dst) {
    (void)buffer;
    if (!ggml_backend_buffer_is_host(device_tensor_buffer(src))) return false;
    memmove(dst->data, src->data, ggml_nbytes(src));
    return true;
}

static void memory_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(buffer->context, value, buffer->size);
}

// What both types share; a mapped buffer has no free_buffer.
static const struct ggml_backend_buffer_i mapped_iface = {
    .get_base = memory_base,
    .memset_tensor = memory_memset,
    .set_tensor = memory_set,
    .get_tensor = memory_get,
    .cpy_tensor = memory_copy,
    .clear = memory_clear,
};

static ggml_backend_buffer_t type_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    void *memory = ggml_mem_aligned_alloc(BLOCK_ALIGNMENT, size);
    if (!memory) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a host buffer of %zu bytes", size);
        return NULL;
    }
    struct ggml_backend_buffer_i iface = mapped_iface;
    iface.free_buffer = memory_free;
    ggml_backend_buffer_t buffer = ggml_backend_buffer_init(buft, iface, memory, size);
    if (!buffer) ggml_mem_aligned_free(memory);
    return buffer;
}

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

static struct ggml_backend_buffer_type cpu_type = {
    .iface = {.get_name = type_name,
              .alloc_buffer = type_alloc,
              .get_alignment = type_alignment,
              .is_host = type_is_host},
    .context = "CPU",
};

static struct ggml_backend_buffer_type mapped_type = {
    .iface = {.get_name = type_name,
              .alloc_buffer = type_alloc,
              .get_alignment = type_alignment,
              .is_host = type_is_host},
    .context = "CPU_Mapped",
};

ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void) {
    return &cpu_type;
}

ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size) {
    if (!device_given(ptr, __func__, "pointer")) return NULL;
    if ((uintptr_t)ptr % TENSOR_ALIGNMENT != 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %p is not aligned to %d bytes", __func__, ptr,
                  TENSOR_ALIGNMENT);
        return NULL;
    }
    return ggml_backend_buffer_init(&mapped_type, mapped_iface, ptr, size);
}
