// SPDX-License-Identifier: MIT
// A piece of memory that shaders and copies work on.
#ifndef GVK_BUFFER_H
#define GVK_BUFFER_H

#include "device/context.h"

struct gvk_buffer {
    struct gvk_context *context;
    VkBuffer handle;
    struct gvk_memory memory;
    uint64_t id;          // never given twice in a context
    uint64_t size;        // bytes that may be bound, at least what was asked for
    char *mapped;         // address of its first byte for the host, or NULL
    char *base;           // what the data of its tensors counts from
    size_t space;         // bytes of address space reserved at base; 0: base is mapped memory
    bool is_external;     // its memory can be exported
    uint32_t memory_type; // of external memory
};

// Bytes of the largest buffer. [any-thread]
uint64_t gvk_buffer_most(const struct gvk_probe *probe);
// size > 0 bytes. [any-thread]
enum ggml_status gvk_buffer_new(struct gvk_context *context, uint64_t size, enum gvk_memory_use use,
                                struct gvk_buffer **out_buffer);
// The size bytes at ptr, which stay the caller's and must be aligned as the driver wants it.
enum ggml_status gvk_buffer_import(struct gvk_context *context, void *ptr, size_t size,
                                   struct gvk_buffer **out_buffer);
// size > 0 bytes of memory that can be exported. [any-thread]
enum ggml_status gvk_buffer_new_external(struct gvk_context *context, uint64_t size,
                                         struct gvk_buffer **out_buffer);
// size > 0 bytes in memory that was exported, `allocation` bytes of the kind memory_type. Takes the
// file descriptor, also when it fails. [any-thread]
enum ggml_status gvk_buffer_import_fd(struct gvk_context *context, int fd, uint64_t size,
                                      uint64_t allocation, uint32_t memory_type,
                                      struct gvk_buffer **out_buffer);
// Frees it; nothing uses it any more. NULL is ignored. [any-thread]
void gvk_buffer_free(struct gvk_buffer *buffer);
// Gives it an address range of its own, so that tensors can lie in it.
enum ggml_status gvk_buffer_reserve_space(struct gvk_buffer *buffer, size_t size);

#endif
