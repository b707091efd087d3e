// SPDX-License-Identifier: MIT
// Copies are in the stream's own queue, which keeps their order with its graphs; two streams copy
// and compute at the same time. Memory of the application's is not given to Metal, which asks for
// whole pages that malloc() does not have.
#include "queue/transfer.h"

#include "gpu/base/tables.h"
#include "memory/buffer.h"
#include "memory/copy.h"

// Bytes of one transfer that are staged, so that what is pending stays below METAL_MAX_PENDING
// times this. Larger ones wait for the stream and are copied then; so are those for which there is
// no staging memory, and those from and to memory that several buffers of Metal's show, as it knows
// no order between these.
enum { MAX_STAGED = 4 << 20, PITCH_UNIT = 4 };

// Pieces of a tensor, and where the host has them.
struct pieces {
    struct metal_place place; // of the first
    char *host;
    size_t size, n, stride_tensor, stride_host;
    size_t pitch; // of pieces in staging memory
};

// Where the tensor's bytes from `offset` on lie.
static enum ggml_host_status find_pieces(const struct metal_stream *stream,
                                         const struct ggml_tensor *tensor, size_t offset,
                                         struct pieces *p) {
    const enum ggml_host_status status = metal_context_check(stream->context);
    if (status != GGML_HOST_OK) return status;
    if (!metal_place_of(tensor, &p->place) || p->place.context != stream->context)
        return ggml_sdk_fail(GGML_HOST_UNSUPPORTED,
                             "metal: '%.*s' does not lie in memory of this device", GGML_MAX_NAME,
                             tensor->name);
    p->place.offset += offset;
    p->place.address += offset;
    if (p->place.contents) p->place.contents += offset;
    p->pitch = (p->size + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;
    return GGML_HOST_OK;
}

static struct metal_spot spot_of(const struct pieces *p, size_t i) {
    const size_t at = i * p->stride_tensor;
    return (struct metal_spot){p->place.handle, p->place.offset + at, p->place.address + at,
                               p->stride_tensor};
}

// Pieces between host memory and host memory, one side of which is staging or shared memory.
static void copy_pieces(char *to, size_t stride_to, const char *from, size_t stride_from,
                        size_t size, size_t n) {
    for (size_t i = 0; i < n; ++i)
        memcpy(to + i * stride_to, from + i * stride_from, size);
}

// With nothing queued on the stream.
static enum ggml_host_status transfer_now(struct metal_stream *stream, const struct pieces *p,
                                          bool to_host) {
    enum ggml_host_status status = GGML_HOST_OK;
    char *contents = p->place.contents;
    if (contents && to_host)
        copy_pieces(p->host, p->stride_host, contents, p->stride_tensor, p->size, p->n);
    else if (contents)
        copy_pieces(contents, p->stride_tensor, p->host, p->stride_host, p->size, p->n);
    for (size_t i = 0; i < p->n && !contents && status == GGML_HOST_OK; ++i) {
        char *host = p->host + i * p->stride_host;
        status = to_host ? metal_download_now(stream->context, spot_of(p, i), host, p->size)
                         : metal_upload_now(stream->context, spot_of(p, i), host, p->size);
    }
    return status;
}

// Staging memory of its own for one transfer, with what comes from the host. NULL: there is none.
static mtl_id staging_of(const struct metal_stream *stream, const struct pieces *p, bool to_host) {
    const mtl_id staging =
        mtl_new_buffer(stream->context->device, p->n * p->pitch, MTL_STORAGE_SHARED);
    if (staging && !to_host)
        copy_pieces(mtl_contents(staging), p->pitch, p->host, p->stride_host, p->size, p->n);
    return staging;
}

// staging: memory of it that the stream is to keep, or NULL.
static enum ggml_host_status queue_copy(struct metal_stream *stream, const struct metal_copy *copy,
                                        mtl_id staging, mtl_id *out_commands) {
    const mtl_id commands = metal_stream_begin(stream);
    if (!commands) return GGML_HOST_OUT_OF_MEMORY;
    const enum ggml_host_status status = metal_copy_encode(stream->context, commands, copy);
    if (status == GGML_HOST_OK) metal_stream_commit_with(stream, commands, staging);
    if (status == GGML_HOST_OK && out_commands)
        *out_commands = commands;
    else
        mtl_release(commands);
    return status;
}

static enum ggml_host_status queue_set(struct metal_stream *stream, const struct pieces *p,
                                       mtl_id staging) {
    const struct metal_copy copy = {metal_spot_of(staging, p->pitch), spot_of(p, 0), p->size, p->n};
    return queue_copy(stream, &copy, staging, NULL);
}

static enum ggml_host_status queue_get(struct metal_stream *stream, const struct pieces *p,
                                       mtl_id staging) {
    struct metal_download *d = ggml_aligned_malloc(sizeof(*d));
    if (!d) return GGML_HOST_OUT_OF_MEMORY;
    *d = (struct metal_download){.stream = stream,
                                 .host = p->host,
                                 .size = p->size,
                                 .n = p->n,
                                 .pitch = p->pitch,
                                 .stride = p->stride_host};
    const struct metal_copy copy = {spot_of(p, 0), metal_spot_of(staging, p->pitch), p->size, p->n};
    const enum ggml_host_status status = queue_copy(stream, &copy, NULL, &d->commands);
    if (status != GGML_HOST_OK) {
        ggml_aligned_free(d, sizeof(*d));
        return status;
    }
    d->staging = mtl_retain(staging);
    metal_download_add(stream->context, d);
    return status;
}

static enum ggml_host_status queue_pieces(struct metal_stream *stream, const struct pieces *p,
                                          bool to_host, mtl_id staging) {
    void *pool = mtl_api.pool_push();
    const enum ggml_host_status status =
        to_host ? queue_get(stream, p, staging) : queue_set(stream, p, staging);
    mtl_api.pool_pop(pool);
    mtl_release(staging);
    return status;
}

// Before a transfer to the host an idle stream is drained too: what earlier ones have staged for it
// must not come to lie over what this one brings.
static enum ggml_host_status transfer(struct metal_stream *stream, const struct pieces *p,
                                      bool to_host) {
    if (p->size == 0 || p->n == 0) return GGML_HOST_OK;
    const bool is_small = p->pitch <= MAX_STAGED / p->n && !p->place.is_aliased;
    const bool is_idle = metal_stream_is_idle(stream);
    const mtl_id staging = is_small && !is_idle ? staging_of(stream, p, to_host) : NULL;
    if (staging) return queue_pieces(stream, p, to_host, staging);
    if (to_host || !is_idle) metal_stream_drain(stream);
    return transfer_now(stream, p, to_host);
}

int32_t metal_transfer_set(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                           size_t offset, size_t size, size_t n, size_t stride_tensor,
                           size_t stride_data) {
    struct pieces p = {.host = (char *)(uintptr_t)data,
                       .size = size,
                       .n = n,
                       .stride_tensor = stride_tensor,
                       .stride_host = stride_data};
    const enum ggml_host_status status = find_pieces(backend->context, tensor, offset, &p);
    return status == GGML_HOST_OK ? transfer(backend->context, &p, false) : status;
}

int32_t metal_transfer_get(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                           size_t offset, size_t size, size_t n, size_t stride_tensor,
                           size_t stride_data) {
    struct pieces p = {.host = data,
                       .size = size,
                       .n = n,
                       .stride_tensor = stride_tensor,
                       .stride_host = stride_data};
    const enum ggml_host_status status = find_pieces(backend->context, tensor, offset, &p);
    return status == GGML_HOST_OK ? transfer(backend->context, &p, true) : status;
}

// --- between streams -----------------------------------------------------------------------------

// The copy is work of both streams: it comes after what either has queued and before what either
// queues later.
int32_t metal_transfer_copy(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                            const struct ggml_tensor *src, struct ggml_tensor *dst) {
    struct metal_stream *from = metal_stream_of(backend_src), *to = metal_stream_of(backend_dst);
    struct metal_place a, b;
    const uintptr_t x = (uintptr_t)src->data, y = (uintptr_t)dst->data;
    const size_t size = ggml_nbytes(dst);
    if (!from || !to || from->context != to->context || !metal_place_of(src, &a) ||
        !metal_place_of(dst, &b) || a.context != to->context || b.context != to->context ||
        a.is_aliased || b.is_aliased || (x < y + size && y < x + size) || size == 0)
        return GGML_HOST_UNSUPPORTED;
    enum ggml_host_status status = metal_context_check(to->context);
    if (status != GGML_HOST_OK) return status;
    void *pool = mtl_api.pool_push();
    const struct metal_copy copy = {
        {a.handle, a.offset, a.address, 0}, {b.handle, b.offset, b.address, 0}, size, 1};
    if (from != to) status = metal_stream_follow(to, from);
    if (status == GGML_HOST_OK) status = queue_copy(to, &copy, NULL, NULL);
    if (status == GGML_HOST_OK && from != to) status = metal_stream_follow(from, to);
    mtl_api.pool_pop(pool);
    return status;
}
