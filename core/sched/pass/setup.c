// SPDX-License-Identifier: MIT
// The pools of a setup: see setup.h.
#include "sched/pass/setup.h"

#include "base/mem.h"
#include "ggml-backend.h"

// The stream's pool, opened if no stream before it has that kind of memory.
static int32_t find_pool(struct sched_setup *setup, ggml_backend_buffer_type_t buft) {
    for (int32_t p = 0; p < setup->n_pools; ++p) {
        if (setup->pools[p].buft == buft) return p;
    }
    setup->pools[setup->n_pools] = memory_pool_of(buft);
    return setup->n_pools++;
}

bool sched_pools_make(struct sched_setup *setup) {
    setup->pools = ggml_mem_calloc((size_t)setup->n_streams, sizeof(setup->pools[0]));
    for (int b = 0; b < setup->n_streams && setup->pools; ++b) {
        struct sched_stream *stream = &setup->streams[b];
        stream->pool = find_pool(setup, stream->buft);
        stream->asks_size = stream->buft->table->get_alloc_size != NULL;
        stream->alignment = setup->pools[stream->pool].alignment;
        while (setup->streams[stream->pool_stream].pool != stream->pool) {
            ++stream->pool_stream;
        }
    }
    return setup->pools != NULL;
}

void sched_pools_free(struct sched_setup *setup) {
    for (int p = 0; p < setup->n_pools; ++p) {
        memory_pool_free(&setup->pools[p]);
    }
    ggml_mem_free(setup->pools);
}

size_t sched_pools_size(const struct sched_setup *setup, int32_t b) {
    const struct memory_pool *pool = &setup->pools[setup->streams[b].pool];
    size_t total = 0;
    for (int32_t k = 0; k < pool->n_chunks && setup->streams[b].pool_stream == b; ++k) {
        ggml_backend_buffer_t buffer = pool->chunks[k].buffer;
        if (buffer) total += ggml_backend_buffer_get_size(buffer);
    }
    return total;
}
