// SPDX-License-Identifier: MIT
// The tensors of copies: see copies.h. Linear in the copies.
#include "sched/pass/copies.h"

#include <stdio.h>

#include "base/array.h"
#include "base/status.h"

// A new tensor like another one, for a stream's copy of it. NULL after the error was set. In a
// pipeline it is kept like an input, as the next run writes it while this one reads.
static struct ggml_tensor *duplicate(const struct sched_setup *setup,
                                     const struct ggml_tensor *tensor, int32_t backend, int slot,
                                     struct tensor_pool *pool) {
    const char *device = sched_stream_label(setup, backend);
    struct ggml_tensor *copy = tensor_pool_take(pool);
    if (!copy) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to copy tensor '%s' to %s",
                  setup->function, tensor->name, device);
        return NULL;
    }
    copy->type = tensor->type;
    memcpy(copy->ne, tensor->ne, sizeof(copy->ne));
    memcpy(copy->nb, tensor->nb, sizeof(copy->nb));
    snprintf(copy->name, sizeof(copy->name), "%s#%.40s#%d", device, tensor->name, slot);
    if (setup->pipeline_depth > 1) copy->flags = GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;
    return copy;
}

// With the original in the slot of the current run, that is an output too: its data must stay.
static bool make_copy(const struct sched_setup *setup, const struct sched_graph *graph,
                      const struct sched_copy *copy, struct tensor_pool *pool,
                      const struct sched_copies *out, struct ggml_tensor **tensors) {
    struct ggml_tensor *original = graph->values[copy->value].tensor;
    for (int slot = 0; slot < out->depth; ++slot) {
        const bool is_original = copy->with_original && slot == out->slot;
        tensors[slot] =
            is_original ? original : duplicate(setup, original, copy->backend, slot, pool);
        if (!tensors[slot]) return false;
        if (is_original) original->flags |= GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;
    }
    return true;
}

// By copy, then by slot: the tensors of one copy lie side by side.
bool sched_copies_make(const struct sched_setup *setup, const struct sched_graph *graph,
                       const struct sched_partition *partition, int32_t slot,
                       struct tensor_pool *pool, struct sched_copies *out) {
    out->depth = setup->pipeline_depth;
    out->slot = slot;
    bool made = ARRAY_GROW(out, tensors, (int64_t)partition->n_copies * out->depth);
    for (int32_t i = 0; i < partition->n_copies && made; ++i) {
        made = make_copy(setup, graph, &partition->copies[i], pool, out,
                         &out->tensors[(int64_t)i * out->depth]);
    }
    return made;
}

// The source of a node that was replaced.
static struct ggml_tensor **rewritten(const struct sched_graph *graph,
                                      const struct sched_rewrite *rewrite) {
    const struct sched_edge *edge = &graph->edges[rewrite->edge];
    return &graph->values[rewrite->node].tensor->src[edge->slot];
}

// Nothing can fail here, so that a graph reads either all copies or all originals.
void sched_read_copies(const struct sched_graph *graph, const struct sched_partition *partition,
                       const struct sched_copies *copies) {
    for (int32_t i = 0; i < partition->n_rewrites; ++i) {
        const struct sched_rewrite *rewrite = &partition->rewrites[i];
        *rewritten(graph, rewrite) = sched_copy_tensor(copies, rewrite->copy);
    }
}

void sched_read_originals(const struct sched_graph *graph,
                          const struct sched_partition *partition) {
    for (int32_t i = 0; i < partition->n_rewrites; ++i) {
        const struct sched_rewrite *rewrite = &partition->rewrites[i];
        *rewritten(graph, rewrite) = graph->values[graph->edges[rewrite->edge].value].tensor;
    }
}
