// SPDX-License-Identifier: MIT
// Committed command buffers stay in a short array, oldest first, until they have ended: when it is
// full, the oldest is waited for.
#include "queue/stream.h"

#include "gpu/base/tables.h"
#include "gpu/base/util.h"
#include "memory/buffer.h"
#include "queue/event.h"
#include "queue/transfer.h"

static const char *stream_name(ggml_backend_t backend) {
    return ((struct metal_stream *)backend->context)->device->name;
}

// Retained: the caller releases it after committing.
mtl_id metal_stream_begin(struct metal_stream *stream) {
    const mtl_id commands = mtl_command_buffer(stream->queue);
    if (!commands) ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no command buffer");
    return mtl_retain(commands);
}

// Takes the oldest out, with its references; NULL if there is none.
static struct metal_pending take_oldest(struct metal_stream *stream) {
    struct metal_pending oldest = {NULL, NULL};
    pthread_mutex_lock(&stream->context->mutex);
    if (stream->n_pending > 0) {
        oldest = stream->pending[0];
        memmove(&stream->pending[0], &stream->pending[1],
                (size_t)--stream->n_pending * sizeof(stream->pending[0]));
    }
    pthread_mutex_unlock(&stream->context->mutex);
    return oldest;
}

static void wait_for_oldest(struct metal_stream *stream) {
    const struct metal_pending oldest = take_oldest(stream);
    metal_commands_wait(stream->context, oldest.commands, &stream->failure);
    mtl_release(oldest.commands);
    mtl_release(oldest.memory);
}

// Waits for the oldest commands if too many are pending, which bounds the memory of queued work.
void metal_stream_commit_with(struct metal_stream *stream, mtl_id commands, mtl_id memory) {
    if (stream->n_pending == METAL_MAX_PENDING) wait_for_oldest(stream);
    mtl_commit(commands);
    pthread_mutex_lock(&stream->context->mutex);
    stream->pending[stream->n_pending++] =
        (struct metal_pending){mtl_retain(commands), mtl_retain(memory)};
    pthread_mutex_unlock(&stream->context->mutex);
}

void metal_stream_commit(struct metal_stream *stream, mtl_id commands) {
    metal_stream_commit_with(stream, commands, NULL);
}

// A queue's command buffers end in their order. What they wait for was committed before: they end
// while the lock is held.
void metal_streams_wait(struct metal_context *context) {
    pthread_mutex_lock(&context->mutex);
    for (struct metal_stream *s = context->streams; s; s = s->next) {
        if (s->n_pending > 0) mtl_wait_until_completed(s->pending[s->n_pending - 1].commands);
    }
    pthread_mutex_unlock(&context->mutex);
}

// O(pending): command buffers of a queue finish in order.
void metal_stream_drain(struct metal_stream *stream) {
    while (stream->n_pending > 0)
        wait_for_oldest(stream);
    metal_downloads_finish(stream->context, stream, UINT64_MAX);
}

// Those that have ended are forgotten on the way; what they brought stays staged until somebody
// waits.
bool metal_stream_is_idle(struct metal_stream *stream) {
    while (stream->n_pending > 0 && mtl_status(stream->pending[0].commands) >= MTL_STATUS_COMPLETED)
        wait_for_oldest(stream);
    return stream->n_pending == 0;
}

// Orders streams of one device, on the device.
// The other stream's queue sets its event to a value that it never had, for which this one waits.
enum ggml_host_status metal_stream_follow(struct metal_stream *stream, struct metal_stream *other) {
    const mtl_id signals = metal_stream_begin(other);
    const mtl_id waits = signals ? metal_stream_begin(stream) : NULL;
    if (waits) {
        mtl_encode_signal(signals, other->mark, ++other->marks);
        metal_stream_commit(other, signals);
        mtl_encode_wait(waits, other->mark, other->marks);
        metal_stream_commit(stream, waits);
    }
    mtl_release(signals);
    mtl_release(waits);
    return waits ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

// Returns and clears the first failure since the last call.
static int32_t stream_synchronize(ggml_backend_t backend) {
    struct metal_stream *stream = backend->context;
    if (!metal_in_owner()) return metal_context_check(stream->context);
    metal_stream_drain(stream);
    const enum ggml_host_status status = stream->failure.status;
    if (status == GGML_HOST_OK) return metal_context_check(stream->context);
    stream->failure.status = GGML_HOST_OK;
    return ggml_sdk_fail(status, "metal: queued work failed: %s", stream->failure.text);
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
        metal_stream_drain(stream);
        metal_context_keep(stream->context);
        metal_encoders_end(&stream->encoders);
        mtl_release(stream->scratch);
        mtl_release(stream->mark);
        mtl_release(stream->queue);
    }
    for (int i = 0; i < stream->n_recordings; ++i)
        metal_recording_free(stream->recordings[i]);
    gpu_plan_free(&stream->plan);
    gpu_graph_key_free(&stream->key);
    ggml_aligned_free(stream, sizeof(*stream));
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0x5b, 0x90, 0x2e, 0xd1, 0x74, 0x0a, 0x47, 0xc6, 0x8f, 0x1d, 0xe8, 0x33, 0x6c, 0xb9,
             0x52, 0x07},
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = gpu_stream_set,
    .get_tensor_async = gpu_stream_get,
    .set_tensor_2d_async = metal_transfer_set,
    .get_tensor_2d_async = metal_transfer_get,
    .cpy_tensor_async = metal_transfer_copy,
    .synchronize = stream_synchronize,
    .graph_plan_create = metal_stream_plan_create,
    .graph_plan_free = metal_stream_plan_free,
    .graph_plan_compute = metal_stream_plan_compute,
    .graph_compute = metal_stream_compute,
    .event_record = metal_event_record,
    .event_wait = metal_event_wait,
    .graph_optimize = metal_stream_optimize,
};

struct metal_stream *metal_stream_of(ggml_backend_t backend) {
    return backend && backend->table == &stream_table ? backend->context : NULL;
}

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
    stream->mark = mtl_new_event(context->device);
    if (!stream->queue || !stream->mark) {
        mtl_release(stream->queue);
        mtl_release(stream->mark);
        ggml_aligned_free(stream, sizeof(*stream));
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no command queue");
    }
    if (context->residency) mtl_add_residency_set(stream->queue, context->residency);
    stream->keeps_order = gpu_is_set("GGML_METAL_DISABLE_REORDER");
    metal_plan_init(&stream->plan, &stream->planner, context->has_matrices);
    link_stream(stream);
    *out_stream = &stream->backend;
    return GGML_HOST_OK;
}
