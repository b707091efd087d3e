// SPDX-License-Identifier: MIT
// First fit in order of address, with neighbours joined when a piece comes back: a device has few
// buffers, so that a list is enough. Pieces that are taken are in the list as well, so that giving
// one back needs no memory. The range grows at its end, by a step or by what is missing; it shrinks
// to nothing when nothing lies in it, since the driver unmaps a whole range at once.
#include "memory/pool.h"

#include "device/context.h"
#include "memory/budget.h"

#define STEP ((size_t)2 << 20)

void cuda_pool_init(struct cuda_pool *pool) {
    pool->range = (struct cuda_range){0};
    pool->pieces = NULL;
    pthread_mutex_init(&pool->mutex, NULL);
}

// Of an empty range.
static void forget_pieces(struct cuda_pool *pool) {
    while (pool->pieces) {
        struct cuda_piece *next = pool->pieces->next;
        ggml_aligned_free(pool->pieces, sizeof(*next));
        pool->pieces = next;
    }
}

void cuda_pool_free(struct cuda_context *context) {
    struct cuda_pool *pool = &context->pool;
    cuda_range_close(context, &pool->range, pool->range.mapped);
    forget_pieces(pool);
    pthread_mutex_destroy(&pool->mutex);
}

static struct cuda_piece *piece_new(CUdeviceptr begin, size_t bytes, struct cuda_piece *next) {
    struct cuda_piece *piece = ggml_aligned_malloc(sizeof(*piece));
    if (piece) *piece = (struct cuda_piece){begin, bytes, false, next};
    return piece;
}

// Linear in the pieces.
static struct cuda_piece *find_free(struct cuda_pool *pool, size_t bytes) {
    struct cuda_piece *piece = pool->pieces;
    while (piece && (piece->is_taken || piece->bytes < bytes))
        piece = piece->next;
    return piece;
}

// Adds memory at the end, so that the last piece is free and has that many bytes.
static enum ggml_host_status add_memory(struct cuda_context *context, size_t bytes) {
    struct cuda_pool *pool = &context->pool;
    struct cuda_piece *last = pool->pieces;
    while (last && last->next)
        last = last->next;
    const size_t before = pool->range.mapped, there = last && !last->is_taken ? last->bytes : 0;
    struct cuda_piece *piece = NULL;
    if (there == 0) {
        piece = piece_new(pool->range.begin + before, 0, NULL);
        if (!piece) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "cuda: no memory for a buffer");
    }
    enum ggml_host_status status =
        // A whole step at first, so that few mappings are made; what is missing alone where that is
        // too much.
        cuda_range_grow(context, &pool->range, before + MAX(bytes - there, STEP));
    if (status == GGML_HOST_OUT_OF_MEMORY)
        status = cuda_range_grow(context, &pool->range, before + bytes - there);
    if (status != GGML_HOST_OK) {
        ggml_aligned_free(piece, sizeof(*piece));
        return status;
    }
    if (piece && last) last->next = piece;
    if (piece && !last) pool->pieces = piece;
    (piece ? piece : last)->bytes += pool->range.mapped - before;
    return status;
}

static enum ggml_host_status take(struct cuda_context *context, size_t bytes,
                                  struct cuda_piece **out_piece) {
    struct cuda_pool *pool = &context->pool;
    enum ggml_host_status status = GGML_HOST_OK;
    if (pool->range.reserved == 0) {
        const uint32_t readers = pool->range.readers;
        status = cuda_range_open(context, &pool->range, context->memory);
        pool->range.readers = readers;
    }
    if (status != GGML_HOST_OK) return status;
    // What is added joins a free last piece, so that the search then finds one.
    struct cuda_piece *piece = find_free(pool, bytes);
    if (!piece) {
        status = add_memory(context, bytes);
        if (status != GGML_HOST_OK) return status;
        piece = find_free(pool, bytes);
    }
    // The rest stays free, behind it.
    if (piece->bytes > bytes) {
        struct cuda_piece *rest =
            piece_new(piece->begin + bytes, piece->bytes - bytes, piece->next);
        if (!rest) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "cuda: no memory for a buffer");
        piece->next = rest;
        piece->bytes = bytes;
    }
    piece->is_taken = true;
    *out_piece = piece;
    return status;
}

enum ggml_host_status cuda_pool_take(struct cuda_context *context, size_t bytes,
                                     struct cuda_piece **out_piece) {
    if (context->unit == 0 || bytes > CUDA_POOL_MOST) return GGML_HOST_UNSUPPORTED;
    pthread_mutex_lock(&context->pool.mutex);
    const enum ggml_host_status status = take(context, bytes, out_piece);
    pthread_mutex_unlock(&context->pool.mutex);
    return status;
}

// Joins the pieces behind that are free as well.
static void join_next(struct cuda_piece *piece) {
    while (piece->next && !piece->next->is_taken) {
        struct cuda_piece *next = piece->next;
        piece->bytes += next->bytes;
        piece->next = next->next;
        ggml_aligned_free(next, sizeof(*next));
    }
}

void cuda_pool_give_back(struct cuda_context *context, struct cuda_piece *piece) {
    struct cuda_pool *pool = &context->pool;
    pthread_mutex_lock(&pool->mutex);
    piece->is_taken = false;
    // The piece before is known only to the list: all neighbours are joined in one walk.
    for (struct cuda_piece *p = pool->pieces; p; p = p->next) {
        if (!p->is_taken) join_next(p);
    }
    const struct cuda_piece *first = pool->pieces;
    // One step stays, for a program that makes a small buffer and frees it again and again.
    if (!first->is_taken && !first->next && pool->range.mapped > STEP) {
        const uint32_t readers = pool->range.readers;
        forget_pieces(pool);
        cuda_range_close(context, &pool->range, pool->range.mapped);
        pool->range.readers = readers;
    }
    pthread_mutex_unlock(&pool->mutex);
}

enum ggml_host_status cuda_pool_admit(struct cuda_context *context, CUdevice device) {
    struct cuda_pool *pool = &context->pool;
    pthread_mutex_lock(&pool->mutex);
    const enum ggml_host_status status = cuda_range_admit(context, &pool->range, device);
    pthread_mutex_unlock(&pool->mutex);
    return status;
}
