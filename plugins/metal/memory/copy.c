// SPDX-License-Identifier: MIT
// A blit encoder copies what lies at multiples of 4 bytes, as macOS asks for; a kernel copies the
// rest. Transfers that block have a queue and staging memory of the context's, one at a time.
#include "memory/copy.h"

enum {
    BLIT_UNIT = 4,
    KERNEL_THREADS = 256,
    STAGING_BYTES = 4 << 20,
    LEAST_STAGING = 16 << 10,
    TYPE_OF_BYTES = GGML_TYPE_I8
};

struct metal_spot metal_spot_of(mtl_id buffer, size_t stride) {
    return (struct metal_spot){buffer, 0, mtl_gpu_address(buffer), stride};
}

// A set bit below the unit in any of the numbers shows in their union.
static bool takes_blit(const struct metal_copy *c) {
    const size_t strides = c->n > 1 ? c->from.stride | c->to.stride : 0;
    return (c->from.offset | c->to.offset | c->size | strides) % BLIT_UNIT == 0;
}

static enum ggml_host_status encode_blit(mtl_id commands, const struct metal_copy *c) {
    const mtl_id encoder = mtl_blit_encoder(commands);
    if (!encoder) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no encoder for copies");
    for (size_t i = 0; i < c->n; ++i)
        mtl_copy_bytes(encoder, c->from.handle, c->from.offset + i * c->from.stride, c->to.handle,
                       c->to.offset + i * c->to.stride, c->size);
    mtl_end_encoding(encoder);
    return GGML_HOST_OK;
}

// Pieces as the rows of a matrix of bytes.
static struct gpu_operand bytes_at(const struct metal_spot *spot, const struct metal_copy *c) {
    const gpu_number rows = (gpu_number)c->n, all = (gpu_number)(c->n * spot->stride);
    return (struct gpu_operand){.data = spot->address,
                                .type = TYPE_OF_BYTES,
                                .ne = {(gpu_number)c->size, rows, 1, 1},
                                .nb = {1, (gpu_number)spot->stride, all, all}};
}

static enum ggml_host_status encode_kernel(struct metal_context *context, mtl_id commands,
                                           const struct metal_copy *c) {
    const struct gpu_args args = {.operands = {bytes_at(&c->to, c), bytes_at(&c->from, c)}};
    mtl_id pipeline;
    const enum ggml_host_status status = metal_context_pipeline(
        context, &(struct metal_variant){.kernel = SIMT_KERNEL_move}, &pipeline);
    if (status != GGML_HOST_OK) return status;
    const mtl_id encoder = mtl_compute_encoder(commands, MTL_DISPATCH_SERIAL);
    if (!encoder) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no command encoder");
    mtl_set_pipeline(encoder, pipeline);
    mtl_set_bytes(encoder, &args, sizeof(args), 0);
    mtl_use_resource(encoder, c->from.handle, MTL_USAGE_READ);
    mtl_use_resource(encoder, c->to.handle, MTL_USAGE_READ | MTL_USAGE_WRITE);
    // A thread per byte: pieces are bytes without an alignment.
    const size_t groups = (c->size * c->n + KERNEL_THREADS - 1) / KERNEL_THREADS;
    mtl_dispatch(encoder, (struct mtl_size){groups, 1, 1}, (struct mtl_size){KERNEL_THREADS, 1, 1});
    mtl_end_encoding(encoder);
    return GGML_HOST_OK;
}

enum ggml_host_status metal_copy_encode(struct metal_context *context, mtl_id commands,
                                        const struct metal_copy *copy) {
    return takes_blit(copy) ? encode_blit(commands, copy) : encode_kernel(context, commands, copy);
}

// --- copies that block ---------------------------------------------------------------------------

// The context's queue for them. Its mutex is held.
static enum ggml_host_status open_queue(struct metal_context *context) {
    if (!context->copies) context->copies = mtl_new_queue(context->device);
    if (context->copies) return GGML_HOST_OK;
    return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no command queue for copies");
}

// Commits and waits. Takes over no reference.
static enum ggml_host_status run(struct metal_context *context, mtl_id commands) {
    struct metal_failure failure = {.status = GGML_HOST_OK};
    mtl_commit(commands);
    metal_commands_wait(context, commands, &failure);
    if (failure.status == GGML_HOST_OK) return GGML_HOST_OK;
    return ggml_sdk_fail(failure.status, "metal: a copy failed: %s", failure.text);
}

// The mutex is held.
static enum ggml_host_status copy_now(struct metal_context *context,
                                      const struct metal_copy *copy) {
    enum ggml_host_status status = open_queue(context);
    if (status != GGML_HOST_OK) return status;
    const mtl_id commands = mtl_command_buffer(context->copies);
    if (!commands) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no command buffer");
    status = metal_copy_encode(context, commands, copy);
    return status == GGML_HOST_OK ? run(context, commands) : status;
}

enum ggml_host_status metal_copy_now(struct metal_context *context, const struct metal_copy *copy) {
    void *pool = mtl_api.pool_push();
    pthread_mutex_lock(&context->copies_mutex);
    const enum ggml_host_status status = copy_now(context, copy);
    pthread_mutex_unlock(&context->copies_mutex);
    mtl_api.pool_pop(pool);
    return status;
}

// Less than usual where there is not so much.
static enum ggml_host_status open_staging(struct metal_context *context) {
    for (size_t n = STAGING_BYTES; !context->staging && n >= LEAST_STAGING; n /= 16) {
        context->staging = mtl_new_buffer(context->device, n, MTL_STORAGE_SHARED);
        context->staging_bytes = n;
    }
    if (context->staging) return GGML_HOST_OK;
    return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no staging memory");
}

// Piece by piece as large as the staging memory. `from` or `to`, or neither: then the bytes are
// `value`.
static enum ggml_host_status stage(struct metal_context *context, struct metal_spot spot,
                                   const void *from, void *to, uint8_t value, size_t size) {
    enum ggml_host_status status = open_staging(context);
    if (status != GGML_HOST_OK) return status;
    const struct metal_spot staging = metal_spot_of(context->staging, 0);
    char *host = mtl_contents(context->staging);
    const size_t most = context->staging_bytes;
    for (size_t done = 0; done < size && status == GGML_HOST_OK; done += most) {
        const size_t n = MIN(size - done, most);
        const struct metal_spot here = {spot.handle, spot.offset + done, spot.address + done, 0};
        // The staging memory is free again for each piece, since each copy is waited for.
        const struct metal_copy copy = {to ? here : staging, to ? staging : here, n, 1};
        if (from)
            memcpy(host, (const char *)from + done, n);
        else if (!to)
            memset(host, value, n);
        status = copy_now(context, &copy);
        if (to && status == GGML_HOST_OK) memcpy((char *)to + done, host, n);
    }
    return status;
}

static enum ggml_host_status stage_locked(struct metal_context *context, struct metal_spot spot,
                                          const void *from, void *to, uint8_t value, size_t size) {
    void *pool = mtl_api.pool_push();
    pthread_mutex_lock(&context->copies_mutex);
    const enum ggml_host_status status = stage(context, spot, from, to, value, size);
    pthread_mutex_unlock(&context->copies_mutex);
    mtl_api.pool_pop(pool);
    return status;
}

enum ggml_host_status metal_upload_now(struct metal_context *context, struct metal_spot spot,
                                       const void *host, size_t size) {
    return stage_locked(context, spot, host, NULL, 0, size);
}

enum ggml_host_status metal_download_now(struct metal_context *context, struct metal_spot spot,
                                         void *host, size_t size) {
    return stage_locked(context, spot, NULL, host, 0, size);
}

// Bytes that no fill command takes come from staging memory.
static enum ggml_host_status fill_now(struct metal_context *context, struct metal_spot spot,
                                      uint8_t value, size_t size) {
    if ((spot.offset | size) % BLIT_UNIT != 0) return stage(context, spot, NULL, NULL, value, size);
    enum ggml_host_status status = open_queue(context);
    if (status != GGML_HOST_OK) return status;
    const mtl_id commands = mtl_command_buffer(context->copies);
    const mtl_id encoder = mtl_blit_encoder(commands);
    if (!encoder) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no encoder for copies");
    mtl_fill_bytes(encoder, spot.handle, (struct mtl_range){spot.offset, size}, value);
    mtl_end_encoding(encoder);
    return run(context, commands);
}

enum ggml_host_status metal_fill_now(struct metal_context *context, struct metal_spot spot,
                                     uint8_t value, size_t size) {
    void *pool = mtl_api.pool_push();
    pthread_mutex_lock(&context->copies_mutex);
    const enum ggml_host_status status =
        size > 0 ? fill_now(context, spot, value, size) : GGML_HOST_OK;
    pthread_mutex_unlock(&context->copies_mutex);
    mtl_api.pool_pop(pool);
    return status;
}
