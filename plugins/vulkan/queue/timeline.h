// SPDX-License-Identifier: MIT
// The order of work: a semaphore that counts what a stream has submitted and finished.
#ifndef VK_TIMELINE_H
#define VK_TIMELINE_H

#include "device/context.h"

// A copy that the host makes once the device's work is done: out of staging memory.
struct vk_readback {
    uint64_t value; // of the work
    char *to;
    const char *from;
    size_t size;
};

struct vk_timeline {
    struct vk_context *context;
    VkSemaphore semaphore;
    atomic_int n_owners;
    atomic_ullong submitted;             // value of the latest submission
    struct vk_timeline *next, *previous; // of the context
    pthread_mutex_t mutex;               // guards what follows
    struct vk_readback *readbacks;       // in the order of their values
    size_t n_readbacks, max_readbacks;
};

enum { VK_MAX_WAITS = 16 };

// Work for a queue.
struct vk_submission {
    VkCommandBuffer commands[2];
    uint32_t n_commands;
    struct vk_wait {
        struct vk_timeline *timeline; // of the same context
        uint64_t value;
    } waits[VK_MAX_WAITS];
    uint32_t n_waits;
};

// NULL after telling why; one owner. [any-thread]
struct vk_timeline *vk_timeline_new(struct vk_context *context);
struct vk_timeline *vk_timeline_share(struct vk_timeline *timeline);
// Ends an ownership; the last one frees it. NULL is ignored. [any-thread]
void vk_timeline_drop(struct vk_timeline *timeline);
// Frees the semaphores of those that are gone; the device is idle.
void vk_timeline_free_spares(struct vk_context *context);
// Submits; out_value is reached when the work and everything submitted before is done. [stream]
enum ggml_status vk_timeline_submit(struct vk_timeline *timeline, struct vk_queue *queue,
                                    const struct vk_submission *submission, uint64_t *out_value);
// Waits until the value is reached, then makes the readbacks up to it. [any-thread]
enum ggml_status vk_timeline_wait(struct vk_timeline *timeline, uint64_t value);
// Value that is reached now; makes the readbacks up to it. [any-thread]
uint64_t vk_timeline_reached(struct vk_timeline *timeline);
// Adds a copy to be made when its value is reached. False: no memory. [stream]
bool vk_timeline_read_back(struct vk_timeline *timeline, const struct vk_readback *readback);
// Drops the readbacks of work that was never submitted. [stream]
void vk_timeline_forget(struct vk_timeline *timeline);
// Waits for the work of all streams of the context. [any-thread]
void vk_timeline_drain(struct vk_context *context);

// Everything before, copies and shaders, comes before everything after, the host's reads included.
void vk_barrier_full(struct vk_context *context, VkCommandBuffer commands);

#endif
