// SPDX-License-Identifier: MIT
// Queued transfers.
#include "memory/buffer_type.h"
#include "queue/stream.h"

// Bytes. A chunk is small enough that copying the next one into the ring goes on while the device
// copies the one before, and large enough that a copy's fixed cost does not show.
enum {
    STAGING_BYTES = 16 << 20,
    CHUNK_BYTES = 1 << 20, // that one copy moves
    FLUSH_BYTES = 4 << 20, // that are worth a submission
};

// The next graph fails as well: the caller that queued the transfer may not have looked.
static int32_t answer(struct gvk_stream *stream, enum ggml_status status) {
    if (stream->late == GGML_STATUS_SUCCESS) stream->late = status;
    return ggml_entry_status(status);
}

static enum ggml_status make_staging(struct gvk_stream *stream) {
    if (stream->staging) return GGML_STATUS_SUCCESS;
    gpu_ring_init(&stream->ring, STAGING_BYTES);
    return gvk_buffer_new(stream->context, STAGING_BYTES, GVK_MEMORY_HOST, &stream->staging);
}

// Submits what is open, and waits until the oldest work that holds staging bytes is done.
static enum ggml_status free_staging(struct gvk_stream *stream) {
    const uint64_t oldest = gpu_ring_oldest(&stream->ring);
    uint64_t ignored;
    enum ggml_status status = GGML_STATUS_SUCCESS;
    if (oldest > atomic_load(&stream->timeline->submitted))
        status = gvk_stream_flush(stream, VK_NULL_HANDLE, &ignored);
    // Nothing was open for which bytes had been taken: its recording had failed.
    if (oldest > atomic_load(&stream->timeline->submitted))
        gpu_ring_forget(&stream->ring, oldest - 1);
    else if (status == GGML_STATUS_SUCCESS)
        status = gvk_timeline_wait(stream->timeline, oldest);
    if (status == GGML_STATUS_SUCCESS) gpu_ring_reach(&stream->ring, oldest);
    return status;
}

// Staging bytes for the work that is submitted next; waits for older work if there is no room.
static enum ggml_status take_staging(struct gvk_stream *stream, size_t size, uint64_t *out_offset) {
    enum ggml_status status = make_staging(stream);
    *out_offset = 0;
    while (status == GGML_STATUS_SUCCESS) {
        const uint64_t next = atomic_load(&stream->timeline->submitted) + 1;
        if (gpu_ring_take(&stream->ring, size, next, out_offset)) return status;
        status = free_staging(stream);
    }
    return status;
}

// Records a copy, after a barrier if it depends on one that is open.
// Copies within one submission may run at once: Vulkan orders them only by barriers. Most are of
// different tensors, so that a barrier comes only where the tracker finds bytes in common.
static enum ggml_status record_copy(struct gvk_stream *stream, const struct gvk_place *src,
                                    const struct gvk_place *dst, uint64_t size) {
    const VkCommandBuffer commands = gvk_stream_commands(stream);
    if (!commands) return GGML_STATUS_FAILED;
    const struct gpu_tracker_touch touches[2] = {
        {src->buffer->id, src->offset, src->offset + size, false},
        {dst->buffer->id, dst->offset, dst->offset + size, true}};
    if (gpu_tracker_conflicts(&stream->open_tracker, touches, 2)) {
        gvk_barrier_full(stream->context, commands);
        gpu_tracker_clear(&stream->open_tracker);
    }
    gpu_tracker_add(&stream->open_tracker, touches, 2);
    const VkBufferCopy region = {src->offset, dst->offset, size};
    stream->context->api.vkCmdCopyBuffer(commands, src->buffer->handle, dst->buffer->handle, 1,
                                         &region);
    stream->open_bytes += size;
    return GGML_STATUS_SUCCESS;
}

// Queues a chunk by way of the staging ring. What goes to the device is copied into the ring at
// once; what comes is copied out when its value of the timeline is reached.
static enum ggml_status queue_chunk(struct gvk_stream *stream, struct gvk_buffer *buffer,
                                    const struct gvk_chunk *chunk, bool to_host) {
    const struct gvk_place device = {buffer, chunk->offset};
    struct gvk_place staging = {NULL, 0};
    enum ggml_status status = take_staging(stream, chunk->size, &staging.offset);
    if (status != GGML_STATUS_SUCCESS) return status;
    staging.buffer = stream->staging;
    char *bytes = stream->staging->mapped + staging.offset;
    if (!to_host) {
        memcpy(bytes, chunk->host, chunk->size);
        return record_copy(stream, &staging, &device, chunk->size);
    }
    status = record_copy(stream, &device, &staging, chunk->size);
    if (status != GGML_STATUS_SUCCESS) return status;
    const struct gvk_readback readback = {.value = atomic_load(&stream->timeline->submitted) + 1,
                                          .to = chunk->host,
                                          .from = bytes,
                                          .size = chunk->size};
    return gvk_timeline_read_back(stream->timeline, &readback) ? status : GGML_STATUS_ALLOC_FAILED;
}

// Queues all chunks of a move, and submits them whenever FLUSH_BYTES are recorded, so that the
// device begins while later ones are still copied.
static enum ggml_status queue_move(struct gvk_stream *stream, const struct gvk_move *move,
                                   bool to_host) {
    struct gvk_progress progress = {0};
    enum ggml_status status = GGML_STATUS_SUCCESS;
    // With nothing queued there is no order to be kept.
    // A driver on the CPU, or unified memory: the host's own copy is the fastest.
    if (stream->context->direct && move->buffer->mapped && gvk_stream_is_idle(stream)) {
        const bool done = to_host ? gvk_transfer_get(move) : gvk_transfer_set(move);
        return done ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED;
    }
    while (status == GGML_STATUS_SUCCESS) {
        const struct gvk_chunk chunk = gvk_move_next(move, &progress, CHUNK_BYTES);
        uint64_t ignored;
        if (chunk.size == 0) break;
        status = queue_chunk(stream, move->buffer, &chunk, to_host);
        if (status == GGML_STATUS_SUCCESS && stream->open_bytes >= FLUSH_BYTES)
            status = gvk_stream_flush(stream, VK_NULL_HANDLE, &ignored);
    }
    return status;
}

// Places a move in a tensor's memory and queues it. UNSUPPORTED for memory of other devices.
static int32_t queue_tensor(struct gvk_stream *stream, const struct ggml_tensor *tensor,
                            struct gvk_move *move, bool to_host) {
    const struct gvk_place place = gvk_place_of(tensor);
    if (!place.buffer || place.buffer->context != stream->context) {
        return answer(stream, gpu_fail_graph(GGML_HOST_UNSUPPORTED,
                                             "vulkan: '%.*s' does not lie in memory of this device",
                                             GGML_MAX_NAME, tensor->name));
    }
    move->buffer = place.buffer;
    move->offset += place.offset;
    return answer(stream, queue_move(stream, move, to_host));
}

// Queues the pieces as one transfer.
int32_t gvk_stream_set_2d(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                          size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                          size_t stride_data) {
    struct gvk_move move = {.offset = offset,
                            .host = (char *)(uintptr_t)data,
                            .size = size,
                            .n = n_copies,
                            .stride_buffer = stride_tensor,
                            .stride_host = stride_data};
    return queue_tensor(backend->context, tensor, &move, false);
}

// The data is in the caller's memory after the stream was synchronised.
int32_t gvk_stream_get_2d(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                          size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                          size_t stride_data) {
    struct gvk_move move = {.offset = offset,
                            .host = data,
                            .size = size,
                            .n = n_copies,
                            .stride_buffer = stride_tensor,
                            .stride_host = stride_data};
    return queue_tensor(backend->context, tensor, &move, true);
}

// The copy is work of both streams: it comes after what either has queued and before what either
// queues later.
int32_t gvk_stream_copy(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                        const struct ggml_tensor *src, struct ggml_tensor *dst) {
    struct gvk_stream *from = gvk_stream_of(backend_src);
    struct gvk_stream *to = gvk_stream_of(backend_dst);
    const struct gvk_place src_place = gvk_place_of(src);
    const struct gvk_place dst_place = gvk_place_of(dst);
    const uint64_t size = ggml_nbytes(dst);
    uint64_t value;
    if (!from || !to || from->context != to->context || !src_place.buffer || !dst_place.buffer ||
        src_place.buffer->context != from->context || dst_place.buffer->context != from->context)
        return GGML_HOST_UNSUPPORTED;
    if (src_place.buffer == dst_place.buffer && src_place.offset < dst_place.offset + size &&
        dst_place.offset < src_place.offset + size)
        return GGML_HOST_UNSUPPORTED;
    if (to != from) {
        if (gvk_stream_flush(to, VK_NULL_HANDLE, &value) != GGML_STATUS_SUCCESS)
            return GGML_HOST_FAILED;
        gvk_stream_wait_for(from, to->timeline, value);
    }
    if (record_copy(from, &src_place, &dst_place, size) != GGML_STATUS_SUCCESS)
        return GGML_HOST_FAILED;
    if (to == from) return GGML_HOST_OK;
    if (gvk_stream_flush(from, VK_NULL_HANDLE, &value) != GGML_STATUS_SUCCESS)
        return GGML_HOST_FAILED;
    gvk_stream_wait_for(to, from->timeline, value);
    return GGML_HOST_OK;
}
