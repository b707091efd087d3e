// SPDX-License-Identifier: MIT
// Memory of a device. Small pieces share allocations, of which drivers allow few.
#ifndef GVK_MEMORY_H
#define GVK_MEMORY_H

#include <pthread.h>

#include "device/loader.h"

struct gvk_context;

enum gvk_memory_use {
    GVK_MEMORY_DEVICE, // tensors
    GVK_MEMORY_UPLOAD, // written by the host, read by the device
    GVK_MEMORY_HOST,   // read and written by the host
};

struct gvk_block;

// Bytes [offset, offset + size) of an allocation.
struct gvk_memory {
    VkDeviceMemory handle;
    uint64_t offset, size;
    char *mapped;            // address of the first byte for the host, or NULL
    struct gvk_block *block; // NULL: an allocation of its own
};

struct gvk_memory_pool {
    pthread_mutex_t mutex;
    struct gvk_block *blocks;
};

void gvk_memory_pool_init(struct gvk_memory_pool *pool);
// Frees the blocks; all pieces were given back.
void gvk_memory_pool_free(struct gvk_context *context);
// Memory for what the requirements say. A failure may leave memory to give back. [any-thread]
enum ggml_status gvk_memory_take(struct gvk_context *context, const VkMemoryRequirements *needs,
                                 enum gvk_memory_use use, struct gvk_memory *out_memory);
// The kind of memory for a use, among those whose bits are set; -1: none fits. [any-thread]
int gvk_memory_choose(const struct gvk_context *context, uint32_t allowed, enum gvk_memory_use use);
// An allocation of its own, of that kind; `next` extends what Vulkan is told of it. [any-thread]
enum ggml_status gvk_memory_allocate(struct gvk_context *context, int type, uint64_t size,
                                     const void *next, struct gvk_memory *out_memory);
// Gives it back; memory without a handle is ignored. [any-thread]
void gvk_memory_give_back(struct gvk_context *context, struct gvk_memory *memory);

#endif
