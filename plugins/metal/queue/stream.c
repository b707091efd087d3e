// SPDX-License-Identifier: MIT
// Committed command buffers stay in a short array, oldest first, until they have ended: when it is
// full, the oldest is waited for.
#include "queue/stream.h"

#include "memory/buffer.h"
#include "queue/event.h"

static const char *stream_name(ggml_backend_t backend) {
    return ((struct metal_stream *)backend->context)->device->name;
}

// Retained: the caller releases it after committing.
mtl_id metal_stream_begin(struct metal_stream *stream) {
    const mtl_id commands = mtl_command_buffer(stream->queue);
    if (!commands) metal_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no command buffer");
    return mtl_retain(commands);
}

// Takes the oldest out, and returns the reference; NULL if there is none.
static mtl_id take_oldest(struct metal_stream *stream) {
    pthread_mutex_lock(&stream->context->mutex);
    const mtl_id commands = stream->n_pending > 0 ? stream->pending[0] : NULL;
    if (commands)
        memmove(&stream->pending[0], &stream->pending[1],
                (size_t)--stream->n_pending * sizeof(stream->pending[0]));
    pthread_mutex_unlock(&stream->context->mutex);
    return commands;
}

static void wait_for_oldest(struct metal_stream *stream) {
    const mtl_id commands = take_oldest(stream);
    metal_commands_wait(stream->context, commands, &stream->failure);
    mtl_release(commands);
}

// Waits for the oldest commands if too many are pending, which bounds the memory of queued work.
void metal_stream_commit(struct metal_stream *stream, mtl_id commands) {
    if (stream->n_pending == METAL_MAX_PENDING) wait_for_oldest(stream);
    mtl_commit(commands);
    pthread_mutex_lock(&stream->context->mutex);
    stream->pending[stream->n_pending++] = mtl_retain(commands);
    pthread_mutex_unlock(&stream->context->mutex);
}

// A queue's command buffers end in their order. What they wait for was committed before: they end
// while the lock is held.
void metal_streams_wait(struct metal_context *context) {
    pthread_mutex_lock(&context->mutex);
    for (struct metal_stream *s = context->streams; s; s = s->next) {
        if (s->n_pending > 0) mtl_wait_until_completed(s->pending[s->n_pending - 1]);
    }
    pthread_mutex_unlock(&context->mutex);
}

// O(pending): command buffers of a queue finish in order.
static void drain(struct metal_stream *stream) {
    while (stream->n_pending > 0)
        wait_for_oldest(stream);
}

// Returns and clears the first failure since the last call.
static int32_t stream_synchronize(ggml_backend_t backend) {
    struct metal_stream *stream = backend->context;
    if (!metal_in_owner()) return metal_context_check(stream->context);
    drain(stream);
    const enum ggml_host_status status = stream->failure.status;
    if (status == GGML_HOST_OK) return metal_context_check(stream->context);
    stream->failure.status = GGML_HOST_OK;
    return metal_fail(status, "metal: queued work failed: %s", stream->failure.text);
}

// The context lists its streams, so that freeing a buffer can wait for all of them.
static void link_stream(struct metal_stream *stream) {
    pthread_mutex_lock(&stream->context->mutex);
    stream->next = stream->context->streams;
    stream->context->streams = stream;
    pthread_mutex_unlock(&stream->context->mutex);
}

static void unlink_stream(struct metal_stream *stream) {
    pthread_mutex_lock(&stream->context->mutex);
    struct metal_stream **at = &stream->context->streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    pthread_mutex_unlock(&stream->context->mutex);
}

// Nothing is waited for in the child of a fork: the work is the parent's.
static void stream_free(ggml_backend_t backend) {
    struct metal_stream *stream = backend->context;
    unlink_stream(stream);
    if (metal_in_owner()) {
        drain(stream);
        mtl_release(stream->queue);
    }
    ggml_aligned_free(stream, sizeof(*stream));
}

// Transfers are the buffers', which the host sees: the host waits before it uses them.
static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0x5b, 0x90, 0x2e, 0xd1, 0x74, 0x0a, 0x47, 0xc6, 0x8f, 0x1d, 0xe8, 0x33, 0x6c, 0xb9,
             0x52, 0x07},
    .get_name = stream_name,
    .free = stream_free,
    .synchronize = stream_synchronize,
    .graph_compute = metal_stream_compute,
    .event_record = metal_event_record,
    .event_wait = metal_event_wait,
};

// A queue of the device. FAILED or OUT_OF_MEMORY with a message.
int32_t metal_stream_new(struct metal_device *device, ggml_backend_t *out_stream) {
    struct metal_context *context = metal_device_context(device);
    if (!context) return GGML_HOST_FAILED;
    const enum ggml_host_status status = metal_context_check(context);
    if (status != GGML_HOST_OK) return status;
    struct metal_stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!stream) return GGML_HOST_OUT_OF_MEMORY;
    memset(stream, 0, sizeof(*stream));
    stream->device = device;
    stream->context = context;
    stream->backend =
        (struct ggml_backend){.table = &stream_table, .device = &device->base, .context = stream};
    stream->queue = mtl_new_queue(context->device);
    if (!stream->queue) {
        ggml_aligned_free(stream, sizeof(*stream));
        return metal_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no command queue");
    }
    link_stream(stream);
    *out_stream = &stream->backend;
    return GGML_HOST_OK;
}
