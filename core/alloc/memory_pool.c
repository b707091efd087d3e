// SPDX-License-Identifier: MIT
// The buffers of a pool: see memory_pool.h.
#include "alloc/memory_pool.h"

#include "base/array.h"
#include "base/mem.h"
#include "ggml-backend.h"

struct memory_pool memory_pool_of(ggml_backend_buffer_type_t buft) {
    const size_t alignment = ggml_backend_buft_get_alignment(buft);
    const size_t limit = ggml_backend_buft_get_max_size(buft);
    return (struct memory_pool){
        .buft = buft, .alignment = alignment, .chunk_limit = limit & ~(alignment - 1)};
}

// A chunk of tensors without elements still needs an address to give them.
static size_t chunk_bytes(const struct memory_pool *pool, size_t planned) {
    return planned > 0 ? planned : pool->alignment;
}

// One without an address is of no use.
static bool make_chunk(struct memory_pool *pool, size_t size, struct memory_chunk *chunk) {
    *chunk = (struct memory_chunk){ggml_backend_buft_alloc_buffer(pool->buft, size), NULL};
    if (!chunk->buffer) return false;
    ggml_backend_buffer_set_usage(chunk->buffer, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    chunk->base = ggml_backend_buffer_get_base(chunk->buffer);
    return chunk->base != NULL;
}

static void free_chunks(struct memory_pool *pool) {
    while (pool->n_chunks > 0)
        ggml_backend_buffer_free(pool->chunks[--pool->n_chunks].buffer);
}

bool memory_pool_fits(const struct memory_pool *pool, const size_t *sizes, int32_t n) {
    bool fits = n <= pool->n_chunks;
    for (int32_t i = 0; i < n && fits; ++i) {
        const struct memory_chunk *chunk = &pool->chunks[i];
        fits = chunk->base &&
               ggml_backend_buffer_get_size(chunk->buffer) >= chunk_bytes(pool, sizes[i]);
    }
    return fits;
}

// All are made anew if one has to be: what remained of a plan whose chunks were of other sizes
// could be more than the device has.
bool memory_pool_provide(struct memory_pool *pool, const size_t *sizes, int32_t n) {
    if (memory_pool_fits(pool, sizes, n)) return true;
    free_chunks(pool); // first, so that both need not fit
    if (!ARRAY_GROW(pool, chunks, n)) return false;
    for (int32_t i = 0; i < n; ++i) {
        if (!make_chunk(pool, chunk_bytes(pool, sizes[i]), &pool->chunks[pool->n_chunks++]))
            return false;
    }
    return true;
}

void memory_pool_free(struct memory_pool *pool) {
    free_chunks(pool);
    ggml_mem_free(pool->chunks);
}
