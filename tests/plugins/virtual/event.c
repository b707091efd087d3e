// SPDX-License-Identifier: MIT
// Events: each recording makes a new fence; who waits holds on to the one that was current.
#include "internal.h"

struct event {
    struct ggml_backend_event base;
    pthread_mutex_t mutex;
    struct fence *fence; // NULL: never recorded
};

void event_free(ggml_backend_event_t handle) {
    struct event *event = handle->context;
    fence_drop(event->fence);
    pthread_mutex_destroy(&event->mutex);
    ggml_aligned_free(event, sizeof(*event));
}

static struct fence *current(ggml_backend_event_t handle) {
    struct event *event = handle->context;
    pthread_mutex_lock(&event->mutex);
    struct fence *fence = fence_share(event->fence);
    pthread_mutex_unlock(&event->mutex);
    return fence;
}

static int32_t event_synchronize(ggml_backend_event_t handle) {
    struct fence *fence = current(handle);
    log_once(VIRTUAL_CALL_SYNCHRONIZE, virtual_device_of(handle->device)->index, 0, 0, "event");
    if (fence) fence_wait(fence);
    fence_drop(fence);
    return GGML_HOST_OK;
}

static const struct ggml_event_table event_table = {
    .size = sizeof(struct ggml_event_table),
    .free = event_free,
    .synchronize = event_synchronize,
};

ggml_backend_event_t event_new(ggml_backend_dev_t device) {
    if (!device_config(device->context).events) return NULL;
    struct event *event = ggml_aligned_malloc(sizeof(*event));
    if (!event) return NULL;
    memset(event, 0, sizeof(*event));
    event->base =
        (struct ggml_backend_event){.table = &event_table, .device = device, .context = event};
    pthread_mutex_init(&event->mutex, NULL);
    return &event->base;
}

static enum ggml_status run_record(struct stream *stream, struct job *job) {
    (void)stream;
    fence_signal(job->of.fence);
    return GGML_STATUS_SUCCESS;
}

static void release_fence(struct job *job) {
    fence_drop(job->of.fence);
}

int32_t stream_event_record(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct stream *stream = backend->context;
    struct event *event = handle->context;
    struct fence *fence = fence_new();
    struct job *job = fence ? job_new() : NULL;
    if (!job) {
        fence_drop(fence);
        stream_wait(stream); // then there is nothing left to wait for
        return GGML_HOST_OK;
    }
    job->run = run_record;
    job->release = release_fence;
    job->of.fence = fence_share(fence);
    job->ticket = log_add((struct virtual_record){.call = VIRTUAL_CALL_RECORD,
                                                  .device = stream->device->index,
                                                  .peer = -1,
                                                  .stream = stream->number});
    pthread_mutex_lock(&event->mutex);
    struct fence *old = event->fence;
    event->fence = fence;
    pthread_mutex_unlock(&event->mutex);
    fence_drop(old);
    stream_queue(stream, job);
    return GGML_HOST_OK;
}

int32_t stream_event_wait(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct fence *fence = current(handle);
    if (fence) stream_wait_for(backend->context, fence);
    return GGML_HOST_OK;
}
