// SPDX-License-Identifier: MIT
// A timeline is a semaphore that counts (VK_KHR_timeline_semaphore, core since 1.2) with one owner
// per stream, event and wait that refers to it. Locks: the context's timelines_mutex guards the
// list and the spare semaphores, the timeline's mutex the read-backs, a queue's mutex its
// submissions, since Vulkan leaves queues to the caller to guard. They are taken in this order,
// never the other way: timelines_mutex, then the queues by number (wait_for_device() takes all of
// them).
#include "queue/timeline.h"

// Timelines that are waited for one by one; with more streams than that the whole device is.
enum { MAX_DRAINED = 64 };

// A semaphore that counts from 0.
static bool make_semaphore(struct gvk_context *context, struct gvk_semaphore *out_semaphore) {
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                        .pNext = &type};
    out_semaphore->value = 0;
    const VkResult result =
        context->api.vkCreateSemaphore(context->device, &info, NULL, &out_semaphore->handle);
    return gvk_context_check(context, result, "vkCreateSemaphore");
}

// One that was given up, whose count goes on, or a new one.
static bool take_semaphore(struct gvk_context *context, struct gvk_semaphore *out_semaphore) {
    pthread_mutex_lock(&context->timelines_mutex);
    const bool found = context->n_spare_semaphores > 0;
    if (found) *out_semaphore = context->spare_semaphores[--context->n_spare_semaphores];
    pthread_mutex_unlock(&context->timelines_mutex);
    return found || make_semaphore(context, out_semaphore);
}

// The caller is its first owner; NULL after the error was set. A spare semaphore goes on
// counting from where its last owner left it.
struct gvk_timeline *gvk_timeline_new(struct gvk_context *context) {
    struct gvk_timeline *timeline = ggml_aligned_malloc(sizeof(*timeline));
    struct gvk_semaphore semaphore;
    if (!timeline || !take_semaphore(context, &semaphore)) {
        ggml_aligned_free(timeline, sizeof(*timeline));
        return NULL;
    }
    memset(timeline, 0, sizeof(*timeline));
    timeline->context = context;
    timeline->semaphore = semaphore.handle;
    atomic_init(&timeline->submitted, semaphore.value);
    atomic_init(&timeline->n_owners, 1);
    pthread_mutex_init(&timeline->mutex, NULL);
    pthread_mutex_lock(&context->timelines_mutex);
    timeline->next = context->timelines;
    if (timeline->next) timeline->next->previous = timeline;
    context->timelines = timeline;
    pthread_mutex_unlock(&context->timelines_mutex);
    return timeline;
}

struct gvk_timeline *gvk_timeline_share(struct gvk_timeline *timeline) {
    atomic_fetch_add(&timeline->n_owners, 1);
    return timeline;
}

// Takes it out of the context's list. The caller holds timelines_mutex.
static void unlink_timeline(struct gvk_timeline *timeline) {
    struct gvk_context *context = timeline->context;
    if (timeline->next) timeline->next->previous = timeline->previous;
    if (timeline->previous)
        timeline->previous->next = timeline->next;
    else
        context->timelines = timeline->next;
}

// When the call for waiting failed, or when everything must have come to an end.
// vkDeviceWaitIdle wants no submission at the same time on any queue.
static bool wait_for_device(struct gvk_context *context) {
    for (uint32_t i = 0; i < context->n_queues; ++i)
        pthread_mutex_lock(&context->queues[i].mutex);
    const VkResult result = context->api.vkDeviceWaitIdle(context->device);
    for (uint32_t i = 0; i < context->n_queues; ++i)
        pthread_mutex_unlock(&context->queues[i].mutex);
    if (result != VK_SUCCESS) atomic_store(&context->lost, true);
    return gvk_context_check(context, result, "vkDeviceWaitIdle");
}

void gvk_timeline_free_spares(struct gvk_context *context) {
    for (int i = 0; i < context->n_spare_semaphores; ++i)
        context->api.vkDestroySemaphore(context->device, context->spare_semaphores[i].handle, NULL);
    context->n_spare_semaphores = 0;
}

// The semaphore is kept: Mesa's queues touch one that they waited for shortly after the work that
// waited is done.
static void keep_semaphore(struct gvk_timeline *timeline) {
    struct gvk_context *context = timeline->context;
    if (context->n_spare_semaphores == GVK_MAX_SPARE_SEMAPHORES) {
        wait_for_device(context);
        gvk_timeline_free_spares(context);
    }
    context->spare_semaphores[context->n_spare_semaphores++] =
        (struct gvk_semaphore){timeline->semaphore, atomic_load(&timeline->submitted)};
}

// The count is lowered under the lock, so that gvk_timeline_drain() can't share one that is at
// zero.
void gvk_timeline_drop(struct gvk_timeline *timeline) {
    if (!timeline) return;
    struct gvk_context *context = timeline->context;
    pthread_mutex_lock(&context->timelines_mutex);
    const bool last = atomic_fetch_sub(&timeline->n_owners, 1) == 1;
    if (last) {
        unlink_timeline(timeline);
        keep_semaphore(timeline);
    }
    pthread_mutex_unlock(&context->timelines_mutex);
    if (!last) return;
    pthread_mutex_destroy(&timeline->mutex);
    ggml_aligned_free(timeline->readbacks, timeline->max_readbacks * sizeof(struct gvk_readback));
    ggml_aligned_free(timeline, sizeof(*timeline));
}

// Submits work that waits for other timelines, and raises this one by 1 when it is done. Doesn't
// block. *out_value is 0 on failure.
enum ggml_status gvk_timeline_submit(struct gvk_timeline *timeline, struct gvk_queue *queue,
                                     const struct gvk_submission *submission, uint64_t *out_value) {
    struct gvk_context *context = timeline->context;
    VkSemaphore semaphores[GVK_MAX_WAITS];
    VkPipelineStageFlags stages[GVK_MAX_WAITS];
    uint64_t values[GVK_MAX_WAITS];
    for (uint32_t i = 0; i < submission->n_waits; ++i) {
        semaphores[i] = submission->waits[i].timeline->semaphore;
        values[i] = submission->waits[i].value;
        stages[i] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    }
    const uint64_t value = atomic_load(&timeline->submitted) + 1;
    const VkTimelineSemaphoreSubmitInfo counts = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = submission->n_waits,
        .pWaitSemaphoreValues = values,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &counts,
                               .waitSemaphoreCount = submission->n_waits,
                               .pWaitSemaphores = semaphores,
                               .pWaitDstStageMask = stages,
                               .commandBufferCount = submission->n_commands,
                               .pCommandBuffers = submission->commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &timeline->semaphore};
    *out_value = 0;
    if (!gvk_context_alive(context)) return GGML_STATUS_FAILED;
    pthread_mutex_lock(&queue->mutex);
    // The value is published inside the queue's lock: a thread that reads it may wait for it, since
    // the submission that signals it has been made.
    const VkResult result = context->api.vkQueueSubmit(queue->handle, 1, &info, VK_NULL_HANDLE);
    if (result == VK_SUCCESS) atomic_store(&timeline->submitted, value);
    pthread_mutex_unlock(&queue->mutex);
    if (!gvk_context_check(context, result, "vkQueueSubmit"))
        return result == VK_ERROR_DEVICE_LOST ? GGML_STATUS_FAILED : GGML_STATUS_ALLOC_FAILED;
    *out_value = value;
    return GGML_STATUS_SUCCESS;
}

// --- readbacks -----------------------------------------------------------------------------------

// Doubles the room for read-backs. The caller holds the timeline's mutex.
static bool grow_readbacks(struct gvk_timeline *timeline) {
    const size_t max = timeline->max_readbacks ? 2 * timeline->max_readbacks : 16;
    struct gvk_readback *more = ggml_aligned_malloc(max * sizeof(*more));
    if (!more) return false;
    if (timeline->n_readbacks)
        memcpy(more, timeline->readbacks, timeline->n_readbacks * sizeof(*more));
    ggml_aligned_free(timeline->readbacks, timeline->max_readbacks * sizeof(*more));
    timeline->readbacks = more;
    timeline->max_readbacks = max;
    return true;
}

// Remembers a copy from staging memory to the caller's that is due when the transfer has finished.
// false if memory runs out.
bool gvk_timeline_read_back(struct gvk_timeline *timeline, const struct gvk_readback *readback) {
    pthread_mutex_lock(&timeline->mutex);
    const bool room = timeline->n_readbacks < timeline->max_readbacks || grow_readbacks(timeline);
    if (room) timeline->readbacks[timeline->n_readbacks++] = *readback;
    pthread_mutex_unlock(&timeline->mutex);
    return room;
}

// In the order of their values, which is that of submission: the list is a queue. Under the lock,
// so that of two threads that wait neither returns before the bytes are in their place.
static void make_readbacks(struct gvk_timeline *timeline, uint64_t value) {
    size_t n = 0;
    pthread_mutex_lock(&timeline->mutex);
    for (; n < timeline->n_readbacks && timeline->readbacks[n].value <= value; ++n) {
        const struct gvk_readback *r = &timeline->readbacks[n];
        memcpy(r->to, r->from, r->size);
    }
    timeline->n_readbacks -= n;
    if (n > 0 && timeline->n_readbacks > 0)
        memmove(timeline->readbacks, timeline->readbacks + n,
                timeline->n_readbacks * sizeof(*timeline->readbacks));
    pthread_mutex_unlock(&timeline->mutex);
}

// Drops read-backs of work that was never submitted: their memory may be gone when its value
// comes.
void gvk_timeline_forget(struct gvk_timeline *timeline) {
    const uint64_t submitted = atomic_load(&timeline->submitted);
    pthread_mutex_lock(&timeline->mutex);
    while (timeline->n_readbacks > 0 &&
           timeline->readbacks[timeline->n_readbacks - 1].value > submitted)
        timeline->n_readbacks--;
    pthread_mutex_unlock(&timeline->mutex);
}

// --- waiting -------------------------------------------------------------------------------------

// Without a time limit: a kernel may take as long as it does, and a driver that gives up reports a
// lost device.
static bool wait_for(struct gvk_timeline *timeline, uint64_t value) {
    struct gvk_context *context = timeline->context;
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &timeline->semaphore,
                                      .pValues = &value};
    const VkResult result = context->api.vkWaitSemaphores(context->device, &info, UINT64_MAX);
    if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST) return wait_for_device(context);
    return gvk_context_check(context, result, "vkWaitSemaphores");
}

// Waits on the host, then makes the copies that are due. 0 has always been reached.
enum ggml_status gvk_timeline_wait(struct gvk_timeline *timeline, uint64_t value) {
    if (!gvk_context_alive(timeline->context)) return GGML_STATUS_FAILED;
    if (value > 0 && !wait_for(timeline, value)) return GGML_STATUS_FAILED;
    make_readbacks(timeline, value);
    return GGML_STATUS_SUCCESS;
}

// The value that the device has reached, without waiting; 0 after an error.
uint64_t gvk_timeline_reached(struct gvk_timeline *timeline) {
    struct gvk_context *context = timeline->context;
    uint64_t value = 0;
    const VkResult result =
        context->api.vkGetSemaphoreCounterValue(context->device, timeline->semaphore, &value);
    if (!gvk_context_check(context, result, "vkGetSemaphoreCounterValue")) return 0;
    make_readbacks(timeline, value);
    return value;
}

// The lock is not held while waiting: what is waited for may need it.
void gvk_timeline_drain(struct gvk_context *context) {
    struct gvk_timeline *timelines[MAX_DRAINED];
    uint64_t values[MAX_DRAINED];
    int n = 0;
    pthread_mutex_lock(&context->timelines_mutex);
    struct gvk_timeline *timeline = context->timelines;
    for (; timeline && n < MAX_DRAINED; timeline = timeline->next) {
        timelines[n] = gvk_timeline_share(timeline);
        values[n++] = atomic_load(&timeline->submitted);
    }
    const bool all = !timeline;
    pthread_mutex_unlock(&context->timelines_mutex);
    if (!all && !gvk_context_lost(context)) wait_for_device(context);
    for (int i = 0; i < n; ++i) {
        if (!gvk_context_lost(context)) gvk_timeline_wait(timelines[i], values[i]);
        gvk_timeline_drop(timelines[i]);
    }
}

// Orders all shaders and transfers before it with all after it, and with reads by the host.
void gvk_barrier_full(struct gvk_context *context, VkCommandBuffer commands) {
    const VkPipelineStageFlags work =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                         VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                         VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT};
    context->api.vkCmdPipelineBarrier(commands, work, work | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                      &barrier, 0, NULL, 0, NULL);
}
