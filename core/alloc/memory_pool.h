// SPDX-License-Identifier: MIT
// The memory of one buffer type, as graph allocators and schedulers keep it: buffers that are made
// anew where a plan needs more, several of them where a device limits their size.
#ifndef GGML_ALLOC_MEMORY_POOL_H
#define GGML_ALLOC_MEMORY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-alloc.h"
#include "ggml-backend-impl.h"

struct memory_chunk {
    ggml_backend_buffer_t buffer; // NULL after a failure
    char *base;                   // its address, NULL if it has none
};

struct memory_pool {
    ggml_backend_buffer_type_t buft;
    size_t alignment;
    size_t chunk_limit;
    struct memory_chunk *chunks;
    int32_t n_chunks, chunks_capacity;
};

// A pool without buffers. The limit is rounded down to the alignment, as offsets are multiples of
// it.
struct memory_pool memory_pool_of(ggml_backend_buffer_type_t buft);
void memory_pool_free(struct memory_pool *pool);
// Whether the buffers hold n chunks of these sizes, and making it so: if one is missing or too
// small, all are freed and made of these sizes. false with a message.
bool memory_pool_fits(const struct memory_pool *pool, const size_t *sizes, int32_t n);
bool memory_pool_provide(struct memory_pool *pool, const size_t *sizes, int32_t n);

#endif
