// SPDX-License-Identifier: MIT
// Addresses from offsets: see bind.h. Two walks, as a view needs the address of its owner, which
// may be a later node. Linear in the values.
#include "sched/pass/bind.h"

#include "base/mem.h"
#include "ggml-backend.h"

// What is bound, and by which plan.
struct binder {
    const struct sched_setup *setup;
    const struct sched_graph *graph;
    const struct sched_liveness *live;
    const struct sched_plan *plan;
    struct bind_chunk *firsts; // by pool: of the first chunk
};

// A buffer and its address. Those of a pool's first chunk, which most tensors lie in, are looked up
// once.
struct bind_chunk {
    ggml_backend_buffer_t buffer; // NULL: there is none
    char *base;
};

// Tells all buffers that their tensors are gone.
static void reset_buffers(const struct sched_setup *setup) {
    for (int p = 0; p < setup->n_pools; ++p) {
        for (int32_t k = 0; k < setup->pools[p].n_chunks; ++k) {
            ggml_backend_buffer_t chunk = setup->pools[p].chunks[k];
            if (chunk) ggml_backend_buffer_reset(chunk);
        }
    }
}

// false if a buffer has no address.
static bool find_firsts(const struct binder *binder) {
    for (int p = 0; p < binder->setup->n_pools; ++p) {
        const struct memory_pool *pool = &binder->setup->pools[p];
        struct bind_chunk *first = &binder->firsts[p];
        *first = (struct bind_chunk){.buffer = pool->n_chunks > 0 ? pool->chunks[0] : NULL};
        if (!first->buffer) continue;
        first->base = ggml_backend_buffer_get_base(first->buffer);
        if (!first->base) return false;
    }
    return true;
}

// Chunks behind the first, which memory of limited buffers needs.
static struct bind_chunk other_chunk(const struct memory_pool *pool, int32_t chunk) {
    struct bind_chunk found = {.buffer = chunk < pool->n_chunks ? pool->chunks[chunk] : NULL};
    if (found.buffer) found.base = ggml_backend_buffer_get_base(found.buffer);
    return found;
}

// An owner of memory at its planned offset; a buffer with init_tensor is told about it. false also
// where the chunk is missing after a failed allocation, and where a graph that repeats another has
// one tensor in two places.
static inline bool bind_entry(const struct binder *binder, int32_t entry,
                              struct ggml_tensor *tensor) {
    const int32_t p = binder->live->ranges[entry].pool;
    const struct live_offset *place = &binder->plan->offsets[entry];
    const struct bind_chunk chunk =
        place->chunk == 0 ? binder->firsts[p] : other_chunk(&binder->setup->pools[p], place->chunk);
    if (!chunk.base || tensor->data) return false;
    tensor->buffer = chunk.buffer;
    tensor->data = chunk.base + place->offset;
    return !chunk.buffer->table->init_tensor ||
           ggml_backend_buffer_init_tensor(chunk.buffer, tensor) == GGML_STATUS_SUCCESS;
}

// Views of memory that no buffer owns have their address already, and a tensor that is listed twice
// has that of the first.
static bool bind_view(const struct sched_value *value) {
    const struct ggml_tensor *view = value->tensor;
    if (!view->view_src || !view->view_src->buffer ||
        ((value->traits & SCHED_HAS_MEMORY) && view->buffer))
        return true;
    return ggml_backend_view_init(value->tensor) == GGML_STATUS_SUCCESS;
}

// Values and copies in the order in which liveness lists what needs memory; then the views, which
// may be of later nodes.
static bool bind_all(const struct binder *binder, const struct sched_copies *copies) {
    const struct sched_value *values = binder->graph->values;
    const int32_t n_values = binder->graph->n_values, *numbers = binder->live->numbers;
    const int32_t n_numbers = binder->live->n_numbers;
    for (int32_t k = 0; k < n_numbers; ++k) {
        const int32_t entry = numbers[k];
        struct ggml_tensor *tensor =
            entry < n_values ? values[entry].tensor : copies->tensors[entry - n_values];
        if (!bind_entry(binder, entry, tensor)) return false;
    }
    for (int32_t i = 0; i < n_values; ++i) {
        if (values[i].root != i && !bind_view(&values[i])) return false;
    }
    return true;
}

bool sched_bind(const struct sched_setup *setup, const struct sched_graph *graph,
                const struct sched_liveness *live, const struct sched_plan *plan,
                const struct sched_partition *partition, const struct sched_copies *copies) {
    struct binder binder = {setup, graph, live, plan, NULL};
    binder.firsts = ggml_mem_alloc((size_t)setup->n_pools * sizeof(binder.firsts[0]));
    if (binder.firsts) reset_buffers(setup);
    const bool bound = binder.firsts && find_firsts(&binder) && bind_all(&binder, copies);
    ggml_mem_free(binder.firsts);
    if (!bound) sched_unbind(graph, partition, copies);
    return bound;
}

// What had memory before keeps it.
void sched_unbind(const struct sched_graph *graph, const struct sched_partition *partition,
                  const struct sched_copies *copies) {
    for (int32_t i = 0; i < graph->n_values; ++i) {
        if (graph->values[i].traits & SCHED_HAS_MEMORY) continue;
        graph->values[i].tensor->buffer = NULL;
        graph->values[i].tensor->data = NULL;
    }
    for (int32_t c = 0; c < partition->n_copies * copies->depth; ++c) {
        copies->tensors[c]->buffer = NULL;
        copies->tensors[c]->data = NULL;
    }
}
