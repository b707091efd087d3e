// SPDX-License-Identifier: MIT
// Recording an event increases the value that the shared event is set to; streams wait for the
// value of the newest mark, the host for the command buffer that sets it.
#include "queue/event.h"

#include "queue/stream.h"

struct metal_event {
    struct ggml_backend_event base;
    struct metal_context *context;
    mtl_id handle;
    uint64_t value;                    // of the last mark; 0: there is none
    mtl_id commands;                   // that reach it
    const struct metal_stream *stream; // of the last mark
    uint64_t downloads;                // that come before it, by the newest's number
};

static void event_free(ggml_backend_event_t handle) {
    struct metal_event *event = handle->context;
    if (metal_in_owner()) {
        mtl_release(event->commands);
        mtl_release(event->handle);
    }
    ggml_aligned_free(event, sizeof(*event));
}

// Waits for the commands that the event was recorded in; an event that was never recorded is
// reached.
static int32_t event_synchronize(ggml_backend_event_t handle) {
    struct metal_event *event = handle->context;
    struct metal_failure failure = {.status = GGML_HOST_OK};
    enum ggml_host_status status = metal_context_check(event->context);
    if (status != GGML_HOST_OK || !event->commands) return status;
    metal_commands_wait(event->context, event->commands, &failure);
    metal_downloads_finish(event->context, event->stream, event->downloads);
    if (failure.status == GGML_HOST_OK) return GGML_HOST_OK;
    return ggml_sdk_fail(failure.status, "metal: queued work failed: %s", failure.text);
}

static const struct ggml_event_table event_table = {
    .size = sizeof(struct ggml_event_table),
    .free = event_free,
    .synchronize = event_synchronize,
};

// Signals between streams on the GPU; the host waits for the command buffer instead.
int32_t metal_event_new(struct metal_device *device, ggml_backend_event_t *out_event) {
    struct metal_context *context = metal_device_context(device);
    if (!context) return GGML_HOST_FAILED;
    const enum ggml_host_status status = metal_context_check(context);
    if (status != GGML_HOST_OK) return status;
    struct metal_event *event = ggml_aligned_malloc(sizeof(*event));
    if (!event) return GGML_HOST_OUT_OF_MEMORY;
    memset(event, 0, sizeof(*event));
    event->context = context;
    event->base = (struct ggml_backend_event){
        .table = &event_table, .device = &device->base, .context = event};
    event->handle = mtl_new_event(context->device);
    if (!event->handle) {
        ggml_aligned_free(event, sizeof(*event));
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no event");
    }
    *out_event = &event->base;
    return GGML_HOST_OK;
}

// The stream signals the next value when everything queued before is done.
int32_t metal_event_record(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct metal_stream *stream = backend->context;
    struct metal_event *event = handle->context;
    if (event->context != stream->context) return GGML_HOST_UNSUPPORTED;
    const enum ggml_host_status status = metal_context_check(stream->context);
    if (status != GGML_HOST_OK) return status;
    void *pool = mtl_api.pool_push();
    const mtl_id commands = metal_stream_begin(stream);
    if (commands) {
        mtl_encode_signal(commands, event->handle, ++event->value);
        metal_stream_commit(stream, commands);
        mtl_release(event->commands);
        event->commands = commands;
        event->stream = stream;
        event->downloads = metal_download_last(stream->context);
    }
    mtl_api.pool_pop(pool);
    return commands ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

// Also for events of another device.
int32_t metal_event_wait(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct metal_stream *stream = backend->context;
    const struct metal_event *event = handle->context;
    const enum ggml_host_status status = metal_context_check(stream->context);
    if (status != GGML_HOST_OK || event->value == 0) return status;
    void *pool = mtl_api.pool_push();
    const mtl_id commands = metal_stream_begin(stream);
    if (commands) {
        mtl_encode_wait(commands, event->handle, event->value);
        metal_stream_commit(stream, commands);
        mtl_release(commands);
    }
    mtl_api.pool_pop(pool);
    return commands ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}
