// SPDX-License-Identifier: MIT
// Addresses from offsets: see bind.h. Two walks, as a view needs the address of its owner, which
// may be a later node. Linear in the values.
#include "sched/pass/bind.h"

#include "ggml-backend.h"

// What is bound, and by which plan.
struct binder {
    const struct sched_setup *setup;
    const struct sched_graph *graph;
    const struct sched_liveness *live;
    const struct sched_plan *plan;
};

// Tells all buffers that their tensors are gone.
static void reset_buffers(const struct sched_setup *setup) {
    for (int p = 0; p < setup->n_pools; ++p) {
        for (int32_t k = 0; k < setup->pools[p].n_chunks; ++k) {
            ggml_backend_buffer_t buffer = setup->pools[p].chunks[k].buffer;
            if (buffer) ggml_backend_buffer_reset(buffer);
        }
    }
}

// An owner of memory at its planned offset; a buffer with init_tensor is told about it. false also
// where the chunk is missing after a failed allocation or has no address, and where a graph that
// repeats another has one tensor in two places.
static inline bool bind_entry(const struct binder *binder, int32_t entry,
                              struct ggml_tensor *tensor) {
    const struct memory_pool *pool = &binder->setup->pools[binder->live->ranges[entry].pool];
    const struct live_offset *place = &binder->plan->offsets[entry];
    if (place->chunk >= pool->n_chunks) return false;
    const struct memory_chunk *chunk = &pool->chunks[place->chunk];
    if (!chunk->base || tensor->data) return false;
    tensor->buffer = chunk->buffer;
    tensor->data = chunk->base + place->offset;
    return !chunk->buffer->table->init_tensor ||
           ggml_backend_buffer_init_tensor(chunk->buffer, tensor) == GGML_STATUS_SUCCESS;
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
    const struct binder binder = {setup, graph, live, plan};
    reset_buffers(setup);
    const bool bound = bind_all(&binder, copies);
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
