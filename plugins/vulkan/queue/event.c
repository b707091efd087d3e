// SPDX-License-Identifier: MIT
// An event is a timeline and a value of it, so that waiting needs no object of the driver. Its
// mutex keeps the pair together, since events may be waited for by other threads than the recording
// one; it is held for a few instructions, never during a wait or a submission.
#include "queue/event.h"

#include "queue/bridge.h"
#include "queue/stream.h"

struct event {
    struct ggml_backend_event base;
    pthread_mutex_t mutex;
    struct gvk_timeline *timeline; // NULL: never recorded
    uint64_t value;
};

static void event_free(ggml_backend_event_t handle) {
    struct event *event = handle->context;
    gvk_timeline_drop(event->timeline);
    pthread_mutex_destroy(&event->mutex);
    ggml_aligned_free(event, sizeof(*event));
}

// What was recorded last, with an ownership of its own; NULL: nothing.
static struct gvk_timeline *current(ggml_backend_event_t handle, uint64_t *out_value) {
    struct event *event = handle->context;
    pthread_mutex_lock(&event->mutex);
    struct gvk_timeline *timeline = event->timeline ? gvk_timeline_share(event->timeline) : NULL;
    *out_value = event->value;
    pthread_mutex_unlock(&event->mutex);
    return timeline;
}

// An event that was never recorded counts as reached.
static int32_t event_synchronize(ggml_backend_event_t handle) {
    uint64_t value;
    struct gvk_timeline *timeline = current(handle, &value);
    const enum ggml_status status =
        timeline ? gvk_timeline_wait(timeline, value) : GGML_STATUS_SUCCESS;
    gvk_timeline_drop(timeline);
    return ggml_entry_status(status);
}

static const struct ggml_event_table event_table = {
    .size = sizeof(struct ggml_event_table),
    .free = event_free,
    .synchronize = event_synchronize,
};

// The timeline is attached when the event is recorded.
ggml_backend_event_t gvk_event_new(ggml_backend_dev_t device) {
    struct event *event = ggml_aligned_malloc(sizeof(*event));
    if (!event) return NULL;
    memset(event, 0, sizeof(*event));
    event->base =
        (struct ggml_backend_event){.table = &event_table, .device = device, .context = event};
    pthread_mutex_init(&event->mutex, NULL);
    return &event->base;
}

// A failed submission leaves the mark at the work before it, and fails the next graph as well.
int32_t gvk_event_record(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct gvk_stream *stream = backend->context;
    struct event *event = handle->context;
    uint64_t value;
    const enum ggml_status status = gvk_stream_flush(stream, VK_NULL_HANDLE, &value);
    if (status != GGML_STATUS_SUCCESS && stream->late == GGML_STATUS_SUCCESS) stream->late = status;
    pthread_mutex_lock(&event->mutex);
    struct gvk_timeline *old = event->timeline;
    event->timeline = gvk_timeline_share(stream->timeline);
    event->value = atomic_load(&stream->timeline->submitted);
    pthread_mutex_unlock(&event->mutex);
    gvk_timeline_drop(old);
    return ggml_entry_status(status);
}

// On the same device the stream waits for the timeline's value on the GPU. For another device a
// thread waits and signals.
int32_t gvk_event_wait(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct gvk_stream *stream = backend->context;
    uint64_t value;
    struct gvk_timeline *timeline = current(handle, &value);
    enum ggml_status status = GGML_STATUS_SUCCESS;
    if (!timeline) return GGML_HOST_OK;
    if (timeline->context == stream->context) {
        // Open transfers were queued before: they need not wait.
        uint64_t ignored;
        if (timeline != stream->timeline)
            status = gvk_stream_flush(stream, VK_NULL_HANDLE, &ignored);
        gvk_stream_wait_for(stream, timeline, value);
    } else {
        status = gvk_bridge_wait(stream, timeline, value);
    }
    gvk_timeline_drop(timeline);
    return ggml_entry_status(status);
}
