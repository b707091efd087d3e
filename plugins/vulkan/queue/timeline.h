// SPDX-License-Identifier: MIT
// The order of work: a semaphore that counts what a stream has submitted and finished.
#ifndef GVK_TIMELINE_H
#define GVK_TIMELINE_H

#include "device/context.h"

// A copy that the host makes once the device's work is done: out of staging memory.
struct gvk_readback {
    uint64_t value; // of the work
    char *to;
    const char *from;
    size_t size;
};

struct gvk_timeline {
    struct gvk_context *context;
    VkSemaphore semaphore;
    atomic_int n_owners;
    atomic_ullong submitted;              // value of the latest submission
    struct gvk_timeline *next, *previous; // of the context
    pthread_mutex_t mutex;                // guards what follows
    struct gvk_readback *readbacks;       // in the order of their values
    size_t n_readbacks, max_readbacks;
};

enum { GVK_MAX_WAITS = 16 };

// Work for a queue.
struct gvk_submission {
    VkCommandBuffer commands[2];
    uint32_t n_commands;
    struct gvk_wait {
        struct gvk_timeline *timeline; // of the same context
        uint64_t value;
    } waits[GVK_MAX_WAITS];
    uint32_t n_waits;
};

// NULL after telling why; one owner. [any-thread]
struct gvk_timeline *gvk_timeline_new(struct gvk_context *context);
struct gvk_timeline *gvk_timeline_share(struct gvk_timeline *timeline);
// Ends an ownership; the last one frees it. NULL is ignored. [any-thread]
void gvk_timeline_drop(struct gvk_timeline *timeline);
// Frees the semaphores of those that are gone; the device is idle.
void gvk_timeline_free_spares(struct gvk_context *context);
// Submits; out_value is reached when the work and everything submitted before is done. [stream]
enum ggml_status gvk_timeline_submit(struct gvk_timeline *timeline, struct gvk_queue *queue,
                                     const struct gvk_submission *submission, uint64_t *out_value);
// Waits until the value is reached, then makes the readbacks up to it. [any-thread]
enum ggml_status gvk_timeline_wait(struct gvk_timeline *timeline, uint64_t value);
// Value that is reached now; makes the readbacks up to it. [any-thread]
uint64_t gvk_timeline_reached(struct gvk_timeline *timeline);
// Adds a copy to be made when its value is reached. False: no memory. [stream]
bool gvk_timeline_read_back(struct gvk_timeline *timeline, const struct gvk_readback *readback);
// Drops the readbacks of work that was never submitted. [stream]
void gvk_timeline_forget(struct gvk_timeline *timeline);
// Waits for the work of all streams of the context. [any-thread]
void gvk_timeline_drain(struct gvk_context *context);

// Everything before, copies and shaders, comes before everything after, the host's reads included.
void gvk_barrier_full(struct gvk_context *context, VkCommandBuffer commands);

#endif
