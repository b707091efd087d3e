// SPDX-License-Identifier: MIT
// A device that is in use: the logical device, its queues, and what all its buffers and streams
// share. It is made when the first of them is, and lives until the plugin ends.
#ifndef GVK_CONTEXT_H
#define GVK_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/probe.h"
#include "memory/memory.h"

enum { GVK_MAX_QUEUES = 8, GVK_MAX_SPARE_SEMAPHORES = 32 };

struct gvk_queue {
    VkQueue handle;
    pthread_mutex_t mutex; // held while submitting
};

// A semaphore that counts, and the highest value that it was told to reach.
struct gvk_semaphore {
    VkSemaphore handle;
    uint64_t value;
};

struct gvk_bridge;
struct gvk_buffer;
struct gvk_pipelines;
struct gvk_timeline;
struct gvk_transfer;

struct gvk_context {
    struct VolkDeviceTable api;
    VkPhysicalDevice physical;
    VkDevice device;
    const struct gvk_probe *probe;
    const struct gvk_features *features;
    bool direct;      // the host reads and writes device memory where it is mapped
    atomic_bool lost; // every later call fails
    uint32_t n_queues;
    atomic_uint next_queue;
    struct gvk_queue queues[GVK_MAX_QUEUES];
    struct gvk_memory_pool memory;
    // By number of storage buffers, from 1.
    VkDescriptorSetLayout set_layouts[GVK_MAX_OPERANDS + 1];
    VkPipelineLayout layouts[GVK_MAX_OPERANDS + 1];
    struct gvk_pipelines *pipelines;
    struct gvk_transfer *transfer;
    atomic_ullong next_buffer_id;
    pthread_mutex_t grids_mutex;
    struct gvk_buffer *grids; // NULL until a graph needs them
    pthread_mutex_t timelines_mutex;
    struct gvk_timeline *timelines; // of all streams
    struct gvk_semaphore spare_semaphores[GVK_MAX_SPARE_SEMAPHORES];
    int n_spare_semaphores;
    pthread_mutex_t bridge_mutex;
    struct gvk_bridge *bridge; // NULL until a stream waits for another device
};

// What a shader sees in its uniform block; see shaders/common.glsl.
struct gvk_parameters {
    struct {
        uint32_t ne[4], nb[4], at[4];
    } tensors[GVK_MAX_OPERANDS];
    int32_t op_params[16];
    uint32_t numbers[GVK_MAX_NUMBERS];
};

// NULL after telling why. The probe and the features outlive it. [any-thread]
struct gvk_context *gvk_context_new(VkPhysicalDevice physical, const struct gvk_probe *probe,
                                    const struct gvk_features *features);
// Ends the threads that wait for other devices; of all contexts before the first is freed. NULL is
// ignored.
void gvk_context_end_threads(struct gvk_context *context);
// Waits for the device, then frees it. Everything made from it was freed before.
void gvk_context_free(struct gvk_context *context);
// Whether a call succeeded; otherwise tells why, and remembers a lost device. [any-thread]
bool gvk_context_check(struct gvk_context *context, VkResult result, const char *call);
// Whether the device still works; otherwise tells so. [any-thread]
bool gvk_context_alive(struct gvk_context *context);
// Whether nothing that is queued will end, and nothing else can be queued. [any-thread]
bool gvk_context_lost(const struct gvk_context *context);
// The next queue in turn. [any-thread]
struct gvk_queue *gvk_context_queue(struct gvk_context *context);

#endif
