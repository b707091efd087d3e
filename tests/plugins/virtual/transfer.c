// SPDX-License-Identifier: MIT
// Queued transfers.
#include <stdio.h>

#include "internal.h"

void transfer_run(const struct transfer *transfer) {
    for (size_t i = 0; i < transfer->n_pieces; ++i) {
        memmove(transfer->dst + i * transfer->stride_dst, transfer->src + i * transfer->stride_src,
                transfer->size);
    }
}

static enum ggml_status run_transfer(struct stream *stream, struct job *job) {
    const struct transfer *transfer = &job->of.transfer;
    memory_delay(stream->device, transfer->peer, transfer->size * transfer->n_pieces);
    transfer_run(transfer);
    return GGML_STATUS_SUCCESS;
}

static void release_transfer(struct job *job) {
    ggml_aligned_free(job->hazard.ranges, 0);
}

static size_t span(const struct transfer *transfer, size_t stride) {
    return (transfer->n_pieces - 1) * stride + transfer->size;
}

// A queued failure is logged; it has been told already.
static void refuse(struct stream *stream, const struct virtual_record *record) {
    log_end(log_add(*record), GGML_STATUS_FAILED);
    pthread_mutex_lock(&stream->mutex);
    stream->status = GGML_STATUS_FAILED;
    pthread_mutex_unlock(&stream->mutex);
}

static struct hazard_range *list_ranges(const struct transfer *transfer) {
    const size_t n = transfer->n_pieces;
    struct hazard_range *ranges = ggml_aligned_malloc(2 * n * sizeof(*ranges));
    for (size_t i = 0; i < n && ranges; ++i) {
        const char *src = transfer->src + i * transfer->stride_src;
        const char *dst = transfer->dst + i * transfer->stride_dst;
        ranges[2 * i] = (struct hazard_range){src, src + transfer->size, false};
        ranges[2 * i + 1] = (struct hazard_range){dst, dst + transfer->size, true};
    }
    return ranges;
}

// Queues it; false when it failed at once.
static bool queue(struct stream *stream, const struct transfer *transfer,
                  const struct virtual_record *record) {
    struct job *job = transfer->dst && transfer->src ? job_new() : NULL;
    struct hazard_range *ranges = job ? list_ranges(transfer) : NULL;
    if (!ranges || stream_gate(stream, GATE_COPY, job) != GGML_STATUS_SUCCESS) {
        refuse(stream, record);
        ggml_aligned_free(ranges, 0);
        ggml_aligned_free(job, sizeof(*job));
        return false;
    }
    job->hazard.ranges = ranges;
    job->hazard.n_ranges = 2 * transfer->n_pieces;
    snprintf(job->hazard.name, sizeof(job->hazard.name), "%.40s", record->text);
    job->run = run_transfer;
    job->release = release_transfer;
    job->of.transfer = *transfer;
    job->ticket = log_add(*record);
    stream_queue(stream, job);
    return true;
}

static struct virtual_record record_of(const struct stream *stream, enum virtual_call call,
                                       const struct ggml_tensor *tensor, size_t bytes) {
    struct virtual_record record = {.call = call,
                                    .device = stream->device->index,
                                    .peer = -1,
                                    .stream = stream->number,
                                    .bytes = bytes};
    snprintf(record.text, sizeof(record.text), "%s", tensor->name);
    return record;
}

int32_t stream_set_2d_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                            size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                            size_t stride_data) {
    struct stream *stream = backend->context;
    struct transfer transfer = {NULL, data, size, n_copies, stride_tensor, stride_data, NULL};
    transfer.dst = memory_resolve(stream->device, tensor, offset, span(&transfer, stride_tensor));
    const struct virtual_record record =
        record_of(stream, VIRTUAL_CALL_SET, tensor, size * n_copies);
    return queue(stream, &transfer, &record) ? GGML_HOST_OK : GGML_HOST_FAILED;
}

int32_t stream_get_2d_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                            size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                            size_t stride_data) {
    struct stream *stream = backend->context;
    struct transfer transfer = {data, NULL, size, n_copies, stride_data, stride_tensor, NULL};
    transfer.src = memory_resolve(stream->device, tensor, offset, span(&transfer, stride_tensor));
    const struct virtual_record record =
        record_of(stream, VIRTUAL_CALL_GET, tensor, size * n_copies);
    return queue(stream, &transfer, &record) ? GGML_HOST_OK : GGML_HOST_FAILED;
}

int32_t stream_set_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                         size_t offset, size_t size) {
    return stream_set_2d_async(backend, tensor, data, offset, size, 1, 0, 0);
}

int32_t stream_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                         size_t offset, size_t size) {
    return stream_get_2d_async(backend, tensor, data, offset, size, 1, 0, 0);
}

// --- between devices -----------------------------------------------------------------------------

// Makes `later` wait for what is queued on `earlier` now.
static bool order(struct stream *earlier, struct stream *later) {
    struct ggml_backend_event *event = event_new(&earlier->device->base);
    if (!event) return false;
    stream_event_record(&earlier->base, event);
    stream_event_wait(&later->base, event);
    event_free(event);
    return true;
}

static bool is_direct(const struct stream *from, const struct stream *to,
                      const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    if (!from || !to || memory_device(src) != from->device || memory_device(dst) != to->device) {
        return false;
    }
    const struct virtual_config a = device_config(from->device);
    const struct virtual_config b = device_config(to->device);
    return from->device == to->device || (a.peer_copy && b.peer_copy && a.events && b.events);
}

int32_t stream_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                          const struct ggml_tensor *src, struct ggml_tensor *dst) {
    struct stream *from = stream_of(backend_src);
    struct stream *to = stream_of(backend_dst);
    if (!is_direct(from, to, src, dst)) return GGML_HOST_UNSUPPORTED;
    const size_t bytes = ggml_nbytes(src);
    const struct transfer transfer = {memory_resolve(to->device, dst, 0, bytes),
                                      memory_resolve(from->device, src, 0, bytes),
                                      bytes,
                                      1,
                                      0,
                                      0,
                                      to->device};
    struct virtual_record record = record_of(from, VIRTUAL_CALL_COPY, src, bytes);
    record.device = to->device->index;
    record.peer = from->device->index;
    if (from != to && device_config(to->device).ordered_copies) order(to, from);
    if (!queue(from, &transfer, &record)) return GGML_HOST_FAILED;
    if (from != to) order(from, to);
    return GGML_HOST_OK;
}
