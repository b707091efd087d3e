// SPDX-License-Identifier: MIT
// ggml_gallocr: the public functions of the graph allocator, and its buffers.
#include "alloc/gallocr.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "ggml-backend.h"

// Pool of a buffer type, opened if it is new: buffers of one type share their memory. The limit is
// rounded down to the alignment, as offsets are multiples of it.
static int find_pool(struct ggml_gallocr *galloc, ggml_backend_buffer_type_t buft) {
    for (int i = 0; i < galloc->n_pools; ++i) {
        if (galloc->pools[i].buft == buft) return i;
    }
    const size_t alignment = ggml_backend_buft_get_alignment(buft);
    const size_t limit = ggml_backend_buft_get_max_size(buft);
    galloc->pools[galloc->n_pools] = (struct gallocr_pool){
        .buft = buft,
        .alignment = alignment,
        .chunk_limit = limit & ~(alignment - 1),
    };
    return galloc->n_pools++;
}

// One pool per distinct type. What could be made is freed by ggml_gallocr_free(), which takes an
// allocator that is half made.
ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs) {
    struct ggml_gallocr *galloc = NULL;
    bool given = bufts && n_bufs > 0;
    for (int i = 0; given && i < n_bufs; ++i) {
        given = bufts[i] != NULL;
    }
    if (!given) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_gallocr_new_n: needs at least one buffer type and "
                  "none that is NULL");
        return NULL;
    }
    galloc = ggml_mem_calloc(1, sizeof(*galloc));
    if (!galloc) goto fail;
    galloc->plan.n_nodes = galloc->spare.n_nodes = -1;
    galloc->n_buffers = n_bufs;
    galloc->pools = ggml_mem_calloc((size_t)n_bufs, sizeof(galloc->pools[0]));
    galloc->pool_of = ggml_mem_calloc((size_t)n_bufs, sizeof(galloc->pool_of[0]));
    if (!galloc->pools || !galloc->pool_of) goto fail;
    for (int i = 0; i < n_bufs; ++i) {
        galloc->pool_of[i] = find_pool(galloc, bufts[i]);
    }
    return galloc;
fail:
    ggml_gallocr_free(galloc);
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_gallocr_new_n: no memory for an allocator");
    return NULL;
}

ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft) {
    return ggml_gallocr_new_n(&buft, 1);
}

void ggml_gallocr_free(ggml_gallocr_t galloc) {
    THREAD_GUARD_END(galloc);
    if (!galloc) return;
    for (int i = 0; i < galloc->n_pools; ++i) {
        for (int32_t k = 0; k < galloc->pools[i].n_chunks; ++k) {
            ggml_backend_buffer_free(galloc->pools[i].chunks[k]);
        }
        ggml_mem_free(galloc->pools[i].chunks);
    }
    graph_plan_free(&galloc->plan);
    graph_plan_free(&galloc->spare);
    plan_scratch_free(&galloc->scratch);
    ggml_mem_free(galloc->pools);
    ggml_mem_free(galloc->pool_of);
    ggml_mem_free(galloc);
}

// A chunk of tensors without elements still needs an address to give them.
static size_t chunk_bytes(const struct gallocr_pool *pool, size_t planned) {
    return planned > 0 ? planned : pool->alignment;
}

// Makes chunk i at least `size` bytes large; what it held is lost then.
static bool ensure_chunk(struct gallocr_pool *pool, int32_t i, size_t size) {
    ggml_backend_buffer_t *chunk = &pool->chunks[i];
    if (*chunk && ggml_backend_buffer_get_size(*chunk) >= size) return true;
    ggml_backend_buffer_free(*chunk); // first, so that both need not fit
    *chunk = ggml_backend_buft_alloc_buffer(pool->buft, size);
    if (*chunk) ggml_backend_buffer_set_usage(*chunk, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    return *chunk != NULL;
}

bool gallocr_pool_fits(const struct gallocr_pool *pool, const size_t *sizes, int32_t n) {
    bool fits = n <= pool->n_chunks;
    for (int32_t i = 0; i < n && fits; ++i) {
        fits = pool->chunks[i] &&
               ggml_backend_buffer_get_size(pool->chunks[i]) >= chunk_bytes(pool, sizes[i]);
    }
    return fits;
}

bool gallocr_pool_provide(struct gallocr_pool *pool, const size_t *sizes, int32_t n) {
    if (n > pool->n_chunks) {
        const size_t bytes = (size_t)n * sizeof(pool->chunks[0]);
        ggml_backend_buffer_t *chunks = ggml_mem_realloc(pool->chunks, bytes);
        if (!chunks) {
            ggml_fail(GGML_HOST_OUT_OF_MEMORY, "graph allocator: no memory to list %d buffers",
                      (int)n);
            return false;
        }
        pool->chunks = chunks;
        while (pool->n_chunks < n) {
            pool->chunks[pool->n_chunks++] = NULL;
        }
    }
    for (int32_t i = 0; i < n; ++i) {
        if (!ensure_chunk(pool, i, chunk_bytes(pool, sizes[i]))) return false;
    }
    return true;
}

// false with a message if an argument is NULL.
static bool is_given(const char *function, ggml_gallocr_t galloc, const struct ggml_cgraph *graph) {
    if (galloc && graph) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the allocator or the graph is NULL", function);
    return false;
}

// Plans into `spare` and swaps, so that the old plan's memory serves the next time.
bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                            const int *node_buffer_ids, const int *leaf_buffer_ids) {
    THREAD_GUARD(galloc, false);
    if (!is_given(__func__, galloc, graph)) return false;
    if (!graph_plan_build(galloc, graph, node_buffer_ids, leaf_buffer_ids)) return false;
    const struct graph_plan plan = galloc->spare;
    galloc->spare = galloc->plan;
    galloc->plan = plan;
    graph_plan_clear(&galloc->spare);
    for (int i = 0; i < galloc->n_pools; ++i) {
        if (gallocr_pool_provide(&galloc->pools[i], plan.pools[i].sizes, plan.pools[i].count)) {
            continue;
        }
        graph_plan_clear(&galloc->plan);
        return false;
    }
    return true;
}

bool ggml_gallocr_reserve(ggml_gallocr_t galloc, struct ggml_cgraph *graph) {
    THREAD_GUARD(galloc, false);
    return ggml_gallocr_reserve_n(galloc, graph, NULL, NULL);
}

// Plans into `spare` and forgets it: nothing is allocated and the plan in use stays.
void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                                 const int *node_buffer_ids, const int *leaf_buffer_ids,
                                 size_t *sizes) {
    THREAD_GUARD_VOID(galloc);
    if (!is_given(__func__, galloc, graph) || !sizes) return;
    memset(sizes, 0, (size_t)galloc->n_buffers * sizeof(sizes[0]));
    if (!graph_plan_build(galloc, graph, node_buffer_ids, leaf_buffer_ids)) return;
    for (int i = 0; i < galloc->n_buffers; ++i) {
        sizes[i] = memory_chunks_total(&galloc->spare.pools[galloc->pool_of[i]]);
    }
    graph_plan_clear(&galloc->spare);
}

// With one buffer a graph of another structure is reserved here; with several only the caller knows
// the ids.
bool ggml_gallocr_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph *graph) {
    THREAD_GUARD(galloc, false);
    if (!is_given(__func__, galloc, graph)) return false;
    if (graph->error) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph is in error: %s", __func__,
                  graph->error);
        return false;
    }
    enum plan_result result = graph_plan_use(galloc, graph);
    if (result == PLAN_DOES_NOT_FIT && galloc->n_buffers == 1) {
        if (!ggml_gallocr_reserve(galloc, graph)) return false;
        result = graph_plan_use(galloc, graph);
    }
    if (result == PLAN_DOES_NOT_FIT) {
        ggml_fail(
            GGML_HOST_INVALID_ARGUMENT,
            "%s: the graph is not the one that was reserved; call ggml_gallocr_reserve_n first",
            __func__);
    }
    return result == PLAN_USED;
}

// What several buffers share counts for the first of them, so that sums are what is used.
size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t galloc, int buffer_id) {
    THREAD_GUARD(galloc, 0);
    if (!galloc || buffer_id < 0 || buffer_id >= galloc->n_buffers) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "ggml_gallocr_get_buffer_size: there is no buffer %d",
                  buffer_id);
        return 0;
    }
    const int pool = galloc->pool_of[buffer_id];
    for (int i = 0; i < buffer_id; ++i) {
        if (galloc->pool_of[i] == pool) return 0; // counted there
    }
    size_t total = 0;
    for (int32_t i = 0; i < galloc->pools[pool].n_chunks; ++i) {
        ggml_backend_buffer_t chunk = galloc->pools[pool].chunks[i];
        if (chunk) total += ggml_backend_buffer_get_size(chunk);
    }
    return total;
}
