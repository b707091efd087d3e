// SPDX-License-Identifier: MIT
// A device that is in use: the logical device, its queues, and what all its buffers and streams
// share. It is made when the first of them is, and lives until the plugin ends.
#ifndef VK_CONTEXT_H
#define VK_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/probe.h"
#include "memory/memory.h"

enum { VK_MAX_QUEUES = 8, VK_MAX_SPARE_SEMAPHORES = 32 };

struct vk_queue {
    VkQueue handle;
    pthread_mutex_t mutex; // held while submitting
};

// A semaphore that counts, and the highest value that it was told to reach.
struct vk_semaphore {
    VkSemaphore handle;
    uint64_t value;
};

struct vk_bridge;
struct vk_buffer;
struct vk_pipelines;
struct vk_timeline;
struct vk_transfer;

struct vk_context {
    struct VolkDeviceTable api;
    VkPhysicalDevice physical;
    VkDevice device;
    const struct vk_probe *probe;
    const struct vk_features *features;
    bool direct;      // the host reads and writes device memory where it is mapped
    atomic_bool lost; // every later call fails
    uint32_t n_queues;
    atomic_uint next_queue;
    struct vk_queue queues[VK_MAX_QUEUES];
    struct vk_memory_pool memory;
    // By number of storage buffers, from 1.
    VkDescriptorSetLayout set_layouts[VK_MAX_OPERANDS + 1];
    VkPipelineLayout layouts[VK_MAX_OPERANDS + 1];
    struct vk_pipelines *pipelines;
    struct vk_transfer *transfer;
    atomic_ullong next_buffer_id;
    pthread_mutex_t grids_mutex;
    struct vk_buffer *grids; // NULL until a graph needs them
    pthread_mutex_t timelines_mutex;
    struct vk_timeline *timelines; // of all streams
    struct vk_semaphore spare_semaphores[VK_MAX_SPARE_SEMAPHORES];
    int n_spare_semaphores;
    pthread_mutex_t bridge_mutex;
    struct vk_bridge *bridge; // NULL until a stream waits for another device
};

// What a shader sees in its uniform block; see shaders/common.glsl.
struct vk_parameters {
    struct {
        uint32_t ne[4], nb[4], at[4];
    } tensors[VK_MAX_OPERANDS];
    int32_t op_params[16];
    uint32_t numbers[VK_MAX_NUMBERS];
};

// NULL after telling why. The probe and the features outlive it. [any-thread]
struct vk_context *vk_context_new(VkPhysicalDevice physical, const struct vk_probe *probe,
                                  const struct vk_features *features);
// Ends the threads that wait for other devices; of all contexts before the first is freed. NULL is
// ignored.
void vk_context_end_threads(struct vk_context *context);
// Waits for the device, then frees it. Everything made from it was freed before.
void vk_context_free(struct vk_context *context);
// Whether a call succeeded; otherwise tells why, and remembers a lost device. [any-thread]
bool vk_context_check(struct vk_context *context, VkResult result, const char *call);
// Whether the device still works; otherwise tells so. [any-thread]
bool vk_context_alive(struct vk_context *context);
// Whether nothing that is queued will end, and nothing else can be queued. [any-thread]
bool vk_context_lost(const struct vk_context *context);
// The next queue in turn. [any-thread]
struct vk_queue *vk_context_queue(struct vk_context *context);

#endif
