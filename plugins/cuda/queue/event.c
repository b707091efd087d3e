// SPDX-License-Identifier: MIT
// Recording and waiting only queue; synchronize blocks the calling thread. Timing is off: with it
// an event costs the device a time stamp, and nobody reads it.
#include "queue/event.h"

#include "device/loader.h"
#include "queue/stream.h"

struct cuda_event {
    struct ggml_backend_event base;
    struct cuda_context *context;
    CUevent handle;
};

// Also of a lost device: the context may still be pushed then, or the call fails and nothing is
// left to do.
static void event_free(ggml_backend_event_t handle) {
    struct cuda_event *event = handle->context;
    if (cuda_in_owner() && cuda_api()->cuCtxPushCurrent(event->context->handle) == CUDA_SUCCESS) {
        cuda_api()->cuEventDestroy(event->handle);
        cuda_context_leave();
    }
    ggml_aligned_free(event, sizeof(*event));
}

// Blocks; an event that was never recorded is done.
static int32_t event_synchronize(ggml_backend_event_t handle) {
    struct cuda_event *event = handle->context;
    enum ggml_host_status status = cuda_context_enter(event->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(event->context, cuda_api()->cuEventSynchronize(event->handle),
                                "work before an event");
    cuda_context_leave();
    return status;
}

static const struct ggml_event_table event_table = {
    .size = sizeof(struct ggml_event_table),
    .free = event_free,
    .synchronize = event_synchronize,
};

// The event belongs to the device's context, which is made by the first use of the device.
int32_t cuda_event_new(struct cuda_device *device, ggml_backend_event_t *out_event) {
    struct cuda_context *context = cuda_device_context(device);
    if (!context) return GGML_HOST_FAILED;
    enum ggml_host_status status = cuda_context_enter(context);
    if (status != GGML_HOST_OK) return status;
    struct cuda_event *event = ggml_aligned_malloc(sizeof(*event));
    if (event) {
        memset(event, 0, sizeof(*event));
        event->context = context;
        event->base = (struct ggml_backend_event){
            .table = &event_table, .device = &device->base.base, .context = event};
        status = cuda_context_check(
            context, cuda_api()->cuEventCreate(&event->handle, CU_EVENT_DISABLE_TIMING),
            "cuEventCreate");
    } else {
        status = GGML_HOST_OUT_OF_MEMORY;
    }
    cuda_context_leave();
    if (status == GGML_HOST_OK)
        *out_event = &event->base;
    else if (event)
        ggml_aligned_free(event, sizeof(*event));
    return status;
}

// An event belongs to a context, and the driver lets no stream of another one record it.
int32_t cuda_event_record(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct cuda_stream *stream = backend->context;
    struct cuda_event *event = handle->context;
    if (event->context != stream->context) return GGML_HOST_UNSUPPORTED;
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(
        stream->context, cuda_api()->cuEventRecord(event->handle, stream->handle), "cuEventRecord");
    cuda_context_leave();
    return status;
}

// Also for events of another device.
int32_t cuda_event_wait(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct cuda_stream *stream = backend->context;
    const struct cuda_event *event = handle->context;
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(stream->context,
                                cuda_api()->cuStreamWaitEvent(stream->handle, event->handle, 0),
                                "cuStreamWaitEvent");
    cuda_context_leave();
    return status;
}
