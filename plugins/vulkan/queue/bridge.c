// SPDX-License-Identifier: MIT
#include "queue/bridge.h"

struct job {
    struct vk_timeline *timeline;
    uint64_t value;
    uint64_t signal; // of the bridge's timeline
    struct job *next;
};

struct vk_bridge {
    struct vk_context *context;
    struct vk_timeline *timeline;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct job *first, *last;
    bool ends;
};

// Signals even if the wait failed: nobody else would.
static void run(struct vk_bridge *bridge, struct job *job) {
    struct vk_context *context = bridge->context;
    vk_timeline_wait(job->timeline, job->value);
    const VkSemaphoreSignalInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                        .semaphore = bridge->timeline->semaphore,
                                        .value = job->signal};
    const VkResult result = context->api.vkSignalSemaphore(context->device, &info);
    vk_context_check(context, result, "vkSignalSemaphore");
    vk_timeline_drop(job->timeline);
    ggml_aligned_free(job, sizeof(*job));
}

static void *work(void *argument) {
    struct vk_bridge *bridge = argument;
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

static struct vk_bridge *bridge_new(struct vk_context *context) {
    struct vk_bridge *bridge = ggml_aligned_malloc(sizeof(*bridge));
    if (!bridge) return NULL;
    memset(bridge, 0, sizeof(*bridge));
    bridge->context = context;
    bridge->timeline = vk_timeline_new(context);
    if (!bridge->timeline) goto fail;
    pthread_mutex_init(&bridge->mutex, NULL);
    pthread_cond_init(&bridge->changed, NULL);
    if (pthread_create(&bridge->thread, NULL, work, bridge) == 0) return bridge;
    pthread_cond_destroy(&bridge->changed);
    pthread_mutex_destroy(&bridge->mutex);
fail:
    vk_timeline_drop(bridge->timeline);
    ggml_aligned_free(bridge, sizeof(*bridge));
    return NULL;
}

void vk_bridge_free(struct vk_bridge *bridge) {
    if (!bridge) return;
    pthread_mutex_lock(&bridge->mutex);
    bridge->ends = true;
    pthread_cond_signal(&bridge->changed);
    pthread_mutex_unlock(&bridge->mutex);
    pthread_join(bridge->thread, NULL);
    pthread_cond_destroy(&bridge->changed);
    pthread_mutex_destroy(&bridge->mutex);
    vk_timeline_drop(bridge->timeline);
    ggml_aligned_free(bridge, sizeof(*bridge));
}

static struct vk_bridge *bridge_of(struct vk_context *context) {
    pthread_mutex_lock(&context->bridge_mutex);
    if (!context->bridge) context->bridge = bridge_new(context);
    struct vk_bridge *bridge = context->bridge;
    pthread_mutex_unlock(&context->bridge_mutex);
    return bridge;
}

void vk_bridge_wait(struct vk_stream *stream, struct vk_timeline *timeline, uint64_t value) {
    struct vk_bridge *bridge = bridge_of(stream->context);
    struct job *job = bridge ? ggml_aligned_malloc(sizeof(*job)) : NULL;
    uint64_t ignored;
    if (!job) {
        vk_timeline_wait(timeline, value);
        return;
    }
    *job = (struct job){.timeline = vk_timeline_share(timeline), .value = value};
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
    vk_stream_flush(stream, VK_NULL_HANDLE, &ignored);
    vk_stream_wait_for(stream, bridge->timeline, signal);
}
