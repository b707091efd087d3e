// SPDX-License-Identifier: MIT
// A stream is the driver's queue: work of one stream is done in order, that of two at the same time
// unless an event orders them. Calls come from one thread at a time (contract: [stream]); what
// streams share, the context, is pushed for each call and popped after it, since the thread is the
// application's and may have a context of its own.
#include "queue/stream.h"

#include "device/loader.h"
#include "gpu/base/tables.h"
#include "memory/buffer.h"
#include "queue/event.h"

static const char *stream_name(ggml_backend_t backend) {
    return ((struct cuda_stream *)backend->context)->device->base.name;
}

// Waits for what is queued: the driver would let it run on into memory that is freed next.
static void stream_free(ggml_backend_t backend) {
    struct cuda_stream *stream = backend->context;
    const struct cu_api *api = cuda_api();
    if (cuda_in_owner() && api->cuCtxPushCurrent(stream->context->handle) == CUDA_SUCCESS) {
        if (stream->handle) {
            api->cuStreamSynchronize(stream->handle);
            api->cuStreamDestroy(stream->handle);
        }
        if (stream->mark) api->cuEventDestroy(stream->mark);
        for (int i = 0; i < stream->n_recordings; ++i)
            cuda_recording_free(stream->recordings[i]);
        cuda_scratch_free(stream->context, &stream->scratch);
        cuda_profile_drop(stream);
        cuda_context_leave();
    }
    gpu_plan_free(&stream->plan);
    gpu_graph_key_free(&stream->key);
    gpu_graph_key_free(&stream->places);
    gpu_slices_close(&stream->profile.slices);
    ggml_aligned_free(stream->overlap, sizeof(*stream->overlap));
    ggml_aligned_free(stream, sizeof(*stream));
}

static int32_t stream_synchronize(ggml_backend_t backend) {
    struct cuda_stream *stream = backend->context;
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(stream->context, cuda_api()->cuStreamSynchronize(stream->handle),
                                "work that was queued");
    cuda_profile_collect(stream);
    cuda_context_leave();
    return status;
}

// --- transfers -----------------------------------------------------------------------------------

// n pieces between the tensor and the host, which may be gone before they are done only after
// synchronize.
// One call of the driver per piece: its own 2-D copies bound the stride (MAX_PITCH). Nothing is
// staged here: from and to pageable memory the driver's copy may block.
static int32_t queue_pieces(struct cuda_stream *stream, const struct ggml_tensor *tensor,
                            size_t offset, char *host, bool to_host, size_t size, size_t n,
                            size_t stride_tensor, size_t stride_host) {
    const struct cu_api *api = cuda_api();
    const struct cuda_buffer *buffer = cuda_buffer_of(tensor);
    if (!buffer || buffer->context != stream->context)
        return ggml_sdk_fail(GGML_HOST_UNSUPPORTED,
                             "cuda: '%.*s' does not lie in memory of this device", GGML_MAX_NAME,
                             tensor->name);
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < n && size > 0 && result == CUDA_SUCCESS; ++i) {
        const CUdeviceptr at = (CUdeviceptr)(uintptr_t)tensor->data + offset + i * stride_tensor;
        result = to_host ? api->cuMemcpyDtoHAsync(host + i * stride_host, at, size, stream->handle)
                         : api->cuMemcpyHtoDAsync(at, host + i * stride_host, size, stream->handle);
    }
    status = cuda_context_check(stream->context, result, "a transfer");
    cuda_context_leave();
    return status;
}

static int32_t stream_set_2d(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                             size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                             size_t stride_data) {
    return queue_pieces(backend->context, tensor, offset, (char *)(uintptr_t)data, false, size,
                        n_copies, stride_tensor, stride_data);
}

static int32_t stream_get_2d(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                             size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                             size_t stride_data) {
    return queue_pieces(backend->context, tensor, offset, data, true, size, n_copies, stride_tensor,
                        stride_data);
}

// An event may be recorded again while others wait for its earlier state: a wait takes the state of
// the moment at which it is queued. So one event per stream is enough, and none is made here.
enum ggml_host_status cuda_stream_mark(struct cuda_stream *stream) {
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(
        stream->context, cuda_api()->cuEventRecord(stream->mark, stream->handle), "cuEventRecord");
    cuda_context_leave();
    return status;
}

// What `stream` queues from now on comes after what `other`, perhaps of another device, has queued.
static enum ggml_host_status follow(struct cuda_stream *stream, struct cuda_stream *other) {
    enum ggml_host_status status = cuda_stream_mark(other);
    if (status == GGML_HOST_OK) status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(stream->context,
                                cuda_api()->cuStreamWaitEvent(stream->handle, other->mark, 0),
                                "cuStreamWaitEvent");
    cuda_context_leave();
    return status;
}

// The copy is work of both streams: it comes after what either has queued and before what either
// queues later.
static int32_t stream_copy(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                           const struct ggml_tensor *src, struct ggml_tensor *dst) {
    struct cuda_stream *from = cuda_stream_of(backend_src), *to = cuda_stream_of(backend_dst);
    const struct cuda_buffer *a = cuda_buffer_of(src), *b = cuda_buffer_of(dst);
    if (!from || !to || !a || !b || a->context != from->context || b->context != to->context)
        return GGML_HOST_UNSUPPORTED;
    const CUdeviceptr x = (CUdeviceptr)(uintptr_t)src->data, y = (CUdeviceptr)(uintptr_t)dst->data;
    const size_t size = ggml_nbytes(dst);
    if (a->context == b->context && x < y + size && y < x + size) return GGML_HOST_UNSUPPORTED;
    enum ggml_host_status status = from == to ? GGML_HOST_OK : follow(to, from);
    if (status == GGML_HOST_OK) status = cuda_context_enter(to->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(
        to->context, cuda_copy(y, to->context, x, from->context, size, to->handle), "a copy");
    cuda_context_leave();
    return status == GGML_HOST_OK && from != to ? (int32_t)follow(from, to) : (int32_t)status;
}

// --- making --------------------------------------------------------------------------------------

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0xc3, 0x1a, 0x77, 0x5e, 0x09, 0xd4, 0x4c, 0x8b, 0xb2, 0x60, 0x1f, 0xe5, 0x93, 0x28,
             0x7a, 0x46},
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = gpu_stream_set,
    .get_tensor_async = gpu_stream_get,
    .set_tensor_2d_async = stream_set_2d,
    .get_tensor_2d_async = stream_get_2d,
    .cpy_tensor_async = stream_copy,
    .synchronize = stream_synchronize,
    .graph_compute = cuda_stream_compute,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .graph_optimize = cuda_stream_optimize,
};

struct cuda_stream *cuda_stream_of(ggml_backend_t backend) {
    return backend && backend->table == &stream_table ? backend->context : NULL;
}

// NON_BLOCKING: the legacy default stream, on which an application may work, would otherwise wait
// for this one and this one for it.
int32_t cuda_stream_new(struct cuda_device *device, ggml_backend_t *out_stream) {
    const struct cu_api *api = cuda_api();
    struct cuda_context *context = cuda_device_context(device);
    if (!context) return GGML_HOST_FAILED;
    enum ggml_host_status status = cuda_context_enter(context);
    if (status != GGML_HOST_OK) return status;
    struct cuda_stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!stream) {
        cuda_context_leave();
        return GGML_HOST_OUT_OF_MEMORY;
    }
    // From here on stream_free() ends it in any state.
    memset(stream, 0, sizeof(*stream));
    stream->device = device;
    stream->context = context;
    stream->one_by_one = gpu_is_set("GGML_CUDA_DISABLE_GRAPHS");
    stream->keeps_order = gpu_is_set("GGML_CUDA_DISABLE_REORDER");
    cuda_plan_init(&stream->plan, context->features);
    stream->backend = (struct ggml_backend){
        .table = &stream_table, .device = &device->base.base, .context = stream};
    status = cuda_context_check(
        context, api->cuStreamCreate(&stream->handle, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (status == GGML_HOST_OK)
        status = cuda_context_check(
            context, api->cuEventCreate(&stream->mark, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    cuda_context_leave();
    if (status == GGML_HOST_OK) {
        *out_stream = &stream->backend;
        return status;
    }
    stream_free(&stream->backend);
    return status;
}
