// SPDX-License-Identifier: MIT
// Transfers that are done when the call returns. One staging buffer and one command buffer per
// context, guarded by a mutex that is held for the whole transfer: two threads take turns, and
// pieces of a 2-D transfer share submissions, up to MAX_REGIONS copies each. All go to the first
// queue, without waiting for streams: the core synchronises what has to be in order.
#include "memory/transfer.h"

#include "queue/timeline.h"

enum { STAGING_BYTES = 4 << 20, MAX_REGIONS = 256 };

struct gvk_transfer {
    struct gvk_context *context;
    pthread_mutex_t mutex;
    VkCommandPool pool;
    VkCommandBuffer commands;
    struct gvk_timeline *timeline;
    struct gvk_buffer *staging; // made when it is needed first
    VkBufferCopy regions[MAX_REGIONS];
    uint32_t n_regions;
};

// Progress is separate from the move, so that the same walk can be taken twice: to record the
// copies, and to fetch what they brought.
struct gvk_chunk gvk_move_next(const struct gvk_move *move, struct gvk_progress *progress,
                               size_t most) {
    if (progress->piece == move->n) return (struct gvk_chunk){0};
    const size_t left = move->size - progress->done;
    const struct gvk_chunk chunk = {
        .offset = move->offset + progress->piece * move->stride_buffer + progress->done,
        .host = move->host + progress->piece * move->stride_host + progress->done,
        .size = MIN(left, most)};
    progress->done += chunk.size;
    if (progress->done == move->size) {
        progress->piece++;
        progress->done = 0;
    }
    return chunk;
}

// The staging buffer is made at the first transfer that needs it: contexts with unified memory
// never do.
struct gvk_transfer *gvk_transfer_new(struct gvk_context *context) {
    struct gvk_transfer *transfer = ggml_aligned_malloc(sizeof(*transfer));
    if (!transfer) return NULL;
    memset(transfer, 0, sizeof(*transfer));
    transfer->context = context;
    pthread_mutex_init(&transfer->mutex, NULL);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex =
                                              (uint32_t)context->probe->queue_family};
    VkResult result =
        context->api.vkCreateCommandPool(context->device, &pool, NULL, &transfer->pool);
    if (result != VK_SUCCESS) transfer->pool = VK_NULL_HANDLE;
    if (!gvk_context_check(context, result, "vkCreateCommandPool")) goto fail;
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = transfer->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    result = context->api.vkAllocateCommandBuffers(context->device, &commands, &transfer->commands);
    if (!gvk_context_check(context, result, "vkAllocateCommandBuffers")) goto fail;
    transfer->timeline = gvk_timeline_new(context);
    if (transfer->timeline) return transfer;
fail:
    gvk_transfer_free(transfer);
    return NULL;
}

// Frees what was created; the caller has waited for the last transfer.
void gvk_transfer_free(struct gvk_transfer *transfer) {
    if (!transfer) return;
    struct gvk_context *context = transfer->context;
    gvk_timeline_drop(transfer->timeline);
    gvk_buffer_free(transfer->staging);
    if (transfer->pool) context->api.vkDestroyCommandPool(context->device, transfer->pool, NULL);
    pthread_mutex_destroy(&transfer->mutex);
    ggml_aligned_free(transfer, sizeof(*transfer));
}

// --- one round trip ------------------------------------------------------------------------------

// Begins the command buffer with a barrier behind everything that was submitted to this queue.
static bool begin(struct gvk_transfer *transfer) {
    struct gvk_context *context = transfer->context;
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    if (!gvk_context_alive(context)) return false;
    const VkResult result = context->api.vkBeginCommandBuffer(transfer->commands, &info);
    if (!gvk_context_check(context, result, "vkBeginCommandBuffer")) return false;
    gvk_barrier_full(context, transfer->commands);
    return true;
}

// Ends the command buffer, submits it and waits for it. Blocks.
static bool finish(struct gvk_transfer *transfer) {
    struct gvk_context *context = transfer->context;
    gvk_barrier_full(context, transfer->commands);
    const VkResult result = context->api.vkEndCommandBuffer(transfer->commands);
    if (!gvk_context_check(context, result, "vkEndCommandBuffer")) return false;
    const struct gvk_submission submission = {.commands = {transfer->commands}, .n_commands = 1};
    uint64_t value;
    return gvk_timeline_submit(transfer->timeline, &context->queues[0], &submission, &value) ==
               GGML_STATUS_SUCCESS &&
           gvk_timeline_wait(transfer->timeline, value) == GGML_STATUS_SUCCESS;
}

static bool has_staging(struct gvk_transfer *transfer) {
    return transfer->staging || gvk_buffer_new(transfer->context, STAGING_BYTES, GVK_MEMORY_HOST,
                                               &transfer->staging) == GGML_STATUS_SUCCESS;
}

// Mapped memory is accessed directly where it is the device's best, and where it is the host's own
// (no address range was reserved); through a BAR reads are slow, so that those are staged.
static bool is_direct(const struct gvk_buffer *buffer) {
    return buffer->mapped && (buffer->context->direct || !buffer->space);
}

// --- host and device -----------------------------------------------------------------------------

// Copies all pieces by the processor, in memory that both see.
static void copy_host(const struct gvk_move *move, bool to_host) {
    struct gvk_progress progress = {0};
    for (;;) {
        const struct gvk_chunk chunk = gvk_move_next(move, &progress, SIZE_MAX);
        if (chunk.size == 0) return;
        char *memory = move->buffer->mapped + chunk.offset;
        memmove(to_host ? chunk.host : memory, to_host ? memory : chunk.host, chunk.size);
    }
}

// Notes a copy between the staging buffer, from byte `used` on, and the device's buffer.
static void add_region(struct gvk_transfer *transfer, size_t used, const struct gvk_chunk *chunk,
                       bool to_host) {
    transfer->regions[transfer->n_regions++] =
        (VkBufferCopy){.srcOffset = to_host ? chunk->offset : used,
                       .dstOffset = to_host ? used : chunk->offset,
                       .size = chunk->size};
}

// As much of the move as the staging buffer holds.
static bool round_trip(struct gvk_transfer *transfer, const struct gvk_move *move,
                       struct gvk_progress *progress, bool to_host) {
    const struct gvk_progress start = *progress;
    char *staging = transfer->staging->mapped;
    size_t used = 0;
    transfer->n_regions = 0;
    while (used < STAGING_BYTES && transfer->n_regions < MAX_REGIONS) {
        const struct gvk_chunk chunk = gvk_move_next(move, progress, STAGING_BYTES - used);
        if (chunk.size == 0) break;
        add_region(transfer, used, &chunk, to_host);
        if (!to_host) memcpy(staging + used, chunk.host, chunk.size);
        used += chunk.size;
    }
    if (!begin(transfer)) return false;
    transfer->context->api.vkCmdCopyBuffer(
        transfer->commands, to_host ? move->buffer->handle : transfer->staging->handle,
        to_host ? transfer->staging->handle : move->buffer->handle, transfer->n_regions,
        transfer->regions);
    if (!finish(transfer)) return false;
    struct gvk_progress again = start;
    for (size_t at = 0; to_host && at < used;) {
        const struct gvk_chunk chunk = gvk_move_next(move, &again, STAGING_BYTES - at);
        memcpy(chunk.host, staging + at, chunk.size);
        at += chunk.size;
    }
    return true;
}

// Moves all pieces, in as many round trips as the staging buffer's size asks for. False after
// the error was set; some pieces may have been moved.
static bool run(const struct gvk_move *move, bool to_host) {
    struct gvk_transfer *transfer = move->buffer->context->transfer;
    struct gvk_progress progress = {0};
    if (!gvk_context_alive(transfer->context)) return false;
    if (is_direct(move->buffer)) {
        copy_host(move, to_host);
        return true;
    }
    pthread_mutex_lock(&transfer->mutex);
    bool ok = has_staging(transfer);
    while (ok && progress.piece < move->n)
        ok = round_trip(transfer, move, &progress, to_host);
    pthread_mutex_unlock(&transfer->mutex);
    return ok;
}

bool gvk_transfer_set(const struct gvk_move *move) {
    return run(move, false);
}

bool gvk_transfer_get(const struct gvk_move *move) {
    return run(move, true);
}

// --- on the device -------------------------------------------------------------------------------

// The device fills words; the bytes before the first and behind the last whole one are set.
static bool fill_words(struct gvk_buffer *buffer, uint64_t begin_at, uint64_t end_at,
                       uint8_t value) {
    struct gvk_transfer *transfer = buffer->context->transfer;
    if (begin_at >= end_at) return true;
    pthread_mutex_lock(&transfer->mutex);
    bool ok = begin(transfer);
    if (ok) {
        transfer->context->api.vkCmdFillBuffer(transfer->commands, buffer->handle, begin_at,
                                               end_at - begin_at, value * UINT32_C(0x01010101));
        ok = finish(transfer);
    }
    pthread_mutex_unlock(&transfer->mutex);
    return ok;
}

// vkCmdFillBuffer wants offset and size in multiples of four.
bool gvk_transfer_fill(struct gvk_buffer *buffer, uint64_t offset, uint64_t size, uint8_t value) {
    if (!gvk_context_alive(buffer->context)) return false;
    if (is_direct(buffer)) {
        memset(buffer->mapped + offset, value, size);
        return true;
    }
    char edge[4];
    memset(edge, value, sizeof(edge));
    const uint64_t end = offset + size;
    const uint64_t first = MIN((offset + 3) & ~UINT64_C(3), end);
    const uint64_t last = MAX(end & ~UINT64_C(3), first);
    struct gvk_move move = {.buffer = buffer, .offset = offset, .host = edge, .n = 1};
    move.size = first - offset;
    if (move.size > 0 && !gvk_transfer_set(&move)) return false;
    if (!fill_words(buffer, first, last, value)) return false;
    move.offset = last;
    move.size = end - last;
    return move.size == 0 || gvk_transfer_set(&move);
}

// Copies between two buffers of the context without staging. Blocks.
bool gvk_transfer_copy(struct gvk_buffer *src, uint64_t src_offset, struct gvk_buffer *dst,
                       uint64_t dst_offset, uint64_t size) {
    struct gvk_transfer *transfer = dst->context->transfer;
    if (!gvk_context_alive(dst->context)) return false;
    if (is_direct(src) && is_direct(dst)) {
        memmove(dst->mapped + dst_offset, src->mapped + src_offset, size);
        return true;
    }
    const VkBufferCopy region = {src_offset, dst_offset, size};
    pthread_mutex_lock(&transfer->mutex);
    bool ok = begin(transfer);
    if (ok) {
        transfer->context->api.vkCmdCopyBuffer(transfer->commands, src->handle, dst->handle, 1,
                                               &region);
        ok = finish(transfer);
    }
    pthread_mutex_unlock(&transfer->mutex);
    return ok;
}
