// SPDX-License-Identifier: MIT
// Memory of a device. Small pieces share allocations, of which drivers allow few.
#ifndef VK_MEMORY_H
#define VK_MEMORY_H

#include <pthread.h>

#include "device/loader.h"

struct vk_context;

enum vk_memory_use {
    VK_MEMORY_DEVICE, // tensors
    VK_MEMORY_UPLOAD, // written by the host, read by the device
    VK_MEMORY_HOST,   // read and written by the host
};

struct vk_block;

// Bytes [offset, offset + size) of an allocation.
struct vk_memory {
    VkDeviceMemory handle;
    uint64_t offset, size;
    char *mapped;           // address of the first byte for the host, or NULL
    struct vk_block *block; // NULL: an allocation of its own
};

struct vk_memory_pool {
    pthread_mutex_t mutex;
    struct vk_block *blocks;
};

void vk_memory_pool_init(struct vk_memory_pool *pool);
// Frees the blocks; all pieces were given back.
void vk_memory_pool_free(struct vk_context *context);
// Memory for what the requirements say. A failure may leave memory to give back. [any-thread]
enum ggml_status vk_memory_take(struct vk_context *context, const VkMemoryRequirements *needs,
                                enum vk_memory_use use, struct vk_memory *out_memory);
// The kind of memory for a use, among those whose bits are set; -1: none fits. [any-thread]
int vk_memory_choose(const struct vk_context *context, uint32_t allowed, enum vk_memory_use use);
// An allocation of its own, of that kind; `next` extends what Vulkan is told of it. [any-thread]
enum ggml_status vk_memory_allocate(struct vk_context *context, int type, uint64_t size,
                                    const void *next, struct vk_memory *out_memory);
// Gives it back; memory without a handle is ignored. [any-thread]
void vk_memory_give_back(struct vk_context *context, struct vk_memory *memory);

#endif
