// SPDX-License-Identifier: MIT
// Waits for work of another logical device, whose semaphores this one's queues can't wait for: a
// thread waits on the host and then signals a timeline of this device. One thread per context, made
// at the first such wait; it takes jobs in order, so that the values that it signals rise, as
// Vulkan demands. A job behind a slow one is late, which costs time but can't deadlock: what a job
// waits for was submitted before the job was made.
#include "queue/bridge.h"

struct job {
    struct gvk_timeline *timeline;
    uint64_t value;
    uint64_t signal; // of the bridge's timeline
    struct job *next;
};

struct gvk_bridge {
    struct gvk_context *context;
    struct gvk_timeline *timeline;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct job *first, *last;
    bool ends;
};

// Signals even if the wait failed: no other code would.
static void run(struct gvk_bridge *bridge, struct job *job) {
    struct gvk_context *context = bridge->context;
    gvk_timeline_wait(job->timeline, job->value);
    const VkSemaphoreSignalInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                        .semaphore = bridge->timeline->semaphore,
                                        .value = job->signal};
    const VkResult result = context->api.vkSignalSemaphore(context->device, &info);
    gvk_context_check(context, result, "vkSignalSemaphore");
    gvk_timeline_drop(job->timeline);
    ggml_aligned_free(job, sizeof(*job));
}

// The thread: waits for one job after the other, and ends when there are none left after the end
// was asked for.
static void *work(void *argument) {
    struct gvk_bridge *bridge = argument;
    gpu_name_thread("ggml-vk-wait");
    pthread_mutex_lock(&bridge->mutex);
    for (;;) {
        while (!bridge->first && !bridge->ends)
            pthread_cond_wait(&bridge->changed, &bridge->mutex);
        struct job *job = bridge->first;
        if (!job) break;
        bridge->first = job->next;
        if (!bridge->first) bridge->last = NULL;
        pthread_mutex_unlock(&bridge->mutex);
        run(bridge, job);
        pthread_mutex_lock(&bridge->mutex);
    }
    pthread_mutex_unlock(&bridge->mutex);
    return NULL;
}

// NULL without memory or a thread; waits are then made by the caller's thread.
static struct gvk_bridge *bridge_new(struct gvk_context *context) {
    struct gvk_bridge *bridge = ggml_aligned_malloc(sizeof(*bridge));
    if (!bridge) return NULL;
    memset(bridge, 0, sizeof(*bridge));
    bridge->context = context;
    bridge->timeline = gvk_timeline_new(context);
    if (!bridge->timeline) goto fail;
    pthread_mutex_init(&bridge->mutex, NULL);
    pthread_cond_init(&bridge->changed, NULL);
    if (pthread_create(&bridge->thread, NULL, work, bridge) == 0) return bridge;
    pthread_cond_destroy(&bridge->changed);
    pthread_mutex_destroy(&bridge->mutex);
fail:
    gvk_timeline_drop(bridge->timeline);
    ggml_aligned_free(bridge, sizeof(*bridge));
    return NULL;
}

// Waits for jobs that are queued: streams wait for the values that they signal.
void gvk_bridge_free(struct gvk_bridge *bridge) {
    if (!bridge) return;
    pthread_mutex_lock(&bridge->mutex);
    bridge->ends = true;
    pthread_cond_signal(&bridge->changed);
    pthread_mutex_unlock(&bridge->mutex);
    pthread_join(bridge->thread, NULL);
    pthread_cond_destroy(&bridge->changed);
    pthread_mutex_destroy(&bridge->mutex);
    gvk_timeline_drop(bridge->timeline);
    ggml_aligned_free(bridge, sizeof(*bridge));
}

// NULL without memory or threads: the caller then waits itself.
static struct gvk_bridge *bridge_of(struct gvk_context *context) {
    pthread_mutex_lock(&context->bridge_mutex);
    if (!context->bridge) context->bridge = bridge_new(context);
    struct gvk_bridge *bridge = context->bridge;
    pthread_mutex_unlock(&context->bridge_mutex);
    return bridge;
}

// Makes the stream's next submission wait; work recorded before it is submitted first, as it
// need not wait. Without a bridge it blocks instead.
enum ggml_status gvk_bridge_wait(struct gvk_stream *stream, struct gvk_timeline *timeline,
                                 uint64_t value) {
    struct gvk_bridge *bridge = bridge_of(stream->context);
    struct job *job = bridge ? ggml_aligned_malloc(sizeof(*job)) : NULL;
    uint64_t ignored;
    if (!job) return gvk_timeline_wait(timeline, value);
    *job = (struct job){.timeline = gvk_timeline_share(timeline), .value = value};
    pthread_mutex_lock(&bridge->mutex);
    job->signal = atomic_fetch_add(&bridge->timeline->submitted, 1) + 1;
    const uint64_t signal = job->signal;
    if (bridge->last)
        bridge->last->next = job;
    else
        bridge->first = job;
    bridge->last = job;
    pthread_cond_signal(&bridge->changed);
    pthread_mutex_unlock(&bridge->mutex);
    const enum ggml_status status = gvk_stream_flush(stream, VK_NULL_HANDLE, &ignored);
    gvk_stream_wait_for(stream, bridge->timeline, signal);
    return status;
}
