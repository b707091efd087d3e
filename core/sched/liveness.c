// SPDX-License-Identifier: MIT
// Live ranges of the tensors of a partitioned graph, and which nodes reuse the memory of a source
// (in place). Linear in nodes and edges: one scan forward finds last uses, one backward takeovers.
// ggml_gallocr does the same for graphs without a partition in alloc/gallocr_plan.c, with steps
// counted from 1 and takeovers found forward in time. Entries are the values and, behind them, the
// copies; step k computes the k-th node, and a live range is [first step, last step].
#include "base/status.h"
#include "ggml-backend.h"
#include "sched/sched.h"

enum { AHEAD = 8 }; // of a walk, what it will need is fetched

// One element more than there are entries, so that no array is NULL for an empty graph.
static bool make_room(struct ggml_backend_sched *sched) {
    const int64_t n = (int64_t)sched_entry_count(sched) + 1;
    return sched_grow(&sched->places, &sched->places_capacity, n, sizeof(sched->places[0])) &&
           sched_grow(&sched->last, &sched->last_capacity, n, sizeof(sched->last[0])) &&
           sched_grow(&sched->early, &sched->early_capacity, (int64_t)sched->n_values + 1,
                      sizeof(sched->early[0]));
}

// --- nodes that are needed before they are computed

// Marks an entry that the node needs although it is computed after it. `last` holds the step at
// which each node is computed meanwhile.
static void note_need(struct ggml_backend_sched *sched, int32_t node, int32_t entry) {
    const struct sched_last *computed = sched->last;
    if (entry >= sched->n_nodes || entry == node) return;
    if (computed[entry].step < computed[node].step) return;
    if (sched->values[entry].traits & SCHED_EARLY) return;
    sched->values[entry].traits |= SCHED_EARLY;
}

// They have to be there from the start.
static void note_early(struct ggml_backend_sched *sched) {
    const int32_t n = sched->n_nodes;
    for (int32_t step = 0; step < n; ++step) {
        sched->last[sched_value_at(sched, step)].step = step; // not used for anything else yet
    }
    for (int32_t i = 0; i < n; ++i) {
        note_need(sched, i, sched->values[i].root);
        for (int32_t e = sched->first_edge[i]; e < sched->first_edge[i + 1]; ++e) {
            note_need(sched, i, sched->values[sched->edges[e].value].root);
        }
    }
}

// --- sizes

// The entry needs memory of that stream, from step `first` on; false with a message.
static inline bool reserve_entry(struct ggml_backend_sched *sched, struct sched_place *place,
                                 const struct ggml_tensor *tensor, int32_t backend, int32_t first) {
    const struct sched_stream *stream = &sched->streams[backend];
    const int32_t pool = stream->pool;
    size_t size = place->size;
    if (UNLIKELY(stream->asks_size)) {
        size = ggml_backend_buft_get_alloc_size(sched->galloc->pools[pool].buft, tensor);
    }
    if (UNLIKELY(size > SIZE_MAX / 4 - stream->alignment)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: tensor '%s' of %zu bytes is too large",
                  sched->function, tensor->name, size);
        return false;
    }
    *place = (struct sched_place){
        .size = GGML_PAD(size, stream->alignment),
        .pool = pool,
        .first = first,
        .from = -1,
    };
    return true;
}

static inline bool needs_place(const struct sched_value *value) {
    return !(value->traits & (SCHED_HAS_MEMORY | SCHED_SLOTTED));
}

// A copy has one tensor per pipeline slot: the one of the current run stands for all, as they are
// of one size.
static struct ggml_tensor *tensor_of(const struct ggml_backend_sched *sched, int32_t entry) {
    return entry < sched->n_values ? sched->values[entry].tensor
                                   : sched_copy_tensor(sched, entry - sched->n_values);
}

// Sets the size, the pool and the first step of an entry that needs memory.
static inline bool settle(struct ggml_backend_sched *sched, int32_t entry, int32_t backend,
                          int32_t first) {
    return reserve_entry(sched, &sched->places[entry], tensor_of(sched, entry), backend, first);
}

// Lists a value that lives from before the first step, unless its memory comes from elsewhere.
static bool settle_early(struct ggml_backend_sched *sched, int32_t value) {
    if (!needs_place(&sched->values[value])) return true;
    sched->early[sched->n_early++] = value;
    return settle(sched, value, sched->values[value].backend, -1);
}

// Of a node whose uses are noted.
static bool settle_node(struct ggml_backend_sched *sched, int32_t node, int32_t step) {
    const struct sched_value *value = &sched->values[node];
    if (value->root != node) return true;
    if (value->traits & SCHED_EARLY) return settle_early(sched, node);
    return !needs_place(value) || settle(sched, node, value->backend, step);
}

// Leafs and tensors that are only mentioned are set before the graph is computed.
static bool settle_loose(struct ggml_backend_sched *sched) {
    for (int32_t i = sched->n_nodes; i < sched->n_values; ++i) {
        if (sched->values[i].root == i && !settle_early(sched, i)) return false;
    }
    return true;
}

// --- uses

// Notes what a node uses; returns whether it may take over the memory of a source.
static inline bool note_uses(struct ggml_backend_sched *sched, int32_t node, int32_t step) {
    const struct sched_edge *edges = sched->edges;
    struct sched_last *last = sched->last;
    const int32_t begin = sched->first_edge[node], end = sched->first_edge[node + 1];
    bool may_take = false;
    for (int32_t e = begin; e < end; ++e) {
        last[edges[e].entry] = (struct sched_last){step, e};
        may_take |= edges[e].same_layout;
    }
    return may_take;
}

// One step of the scan. A view as a node is a use of the memory that it views. An early node has
// memory from the start, so it takes none over.
static bool note_node(struct ggml_backend_sched *sched, int32_t node, int32_t step) {
    const struct sched_value *value = &sched->values[node];
    if (value->root != node) sched->last[value->root] = (struct sched_last){step, SCHED_VIEWED};
    const bool may_take = note_uses(sched, node, step);
    if (value->root == node && (value->traits & SCHED_EARLY)) {
        // It is written even if all who read it come before.
        sched->last[node] = (struct sched_last){step, SCHED_NOT_USED};
    } else if (value->root == node && may_take && needs_place(value)) {
        sched->inplace_steps[sched->n_inplace_steps++] = step;
    }
    return settle_node(sched, node, step);
}

// In any order of steps.
static bool note_all(struct ggml_backend_sched *sched) {
    memset(sched->last, 0xFF, (size_t)sched_entry_count(sched) * sizeof(sched->last[0]));
    sched->n_inplace_steps = 0;
    if (!settle_loose(sched)) return false;
    for (int32_t step = 0; step < sched->n_nodes; ++step) {
        if (!note_node(sched, sched_value_at(sched, step), step)) return false;
    }
    return true;
}

// --- copies and results

// Copies live from the first step of the split that makes them.
static bool note_copies(struct ggml_backend_sched *sched, const struct sched_split *split) {
    for (int32_t k = 0; k < split->n_inputs; ++k) {
        const int32_t number = sched->inputs[split->first_input + k];
        const struct sched_copy *copy = &sched->copies[number];
        const int32_t root = sched->values[copy->value].root, entry = sched->n_values + number;
        // The original is kept until it has been copied: through the first step of the split.
        if (sched->last[root].step < split->i_start) {
            sched->last[root] = (struct sched_last){split->i_start, SCHED_COPIED};
        }
        if (sched->pipeline_depth > 1) continue; // they live for ever, elsewhere
        sched->places[entry].size = ggml_nbytes(tensor_of(sched, entry));
        if (!settle(sched, entry, copy->backend, split->i_start)) return false;
    }
    return true;
}

static bool note_all_copies(struct ggml_backend_sched *sched) {
    for (int32_t s = 0; s < sched->n_splits; ++s) {
        if (!note_copies(sched, &sched->splits[s])) return false;
    }
    return true;
}

// What is an output, or was made for nobody inside the graph, stays. A view that computes nothing
// only marks a dependency.
static void keep_results(struct ggml_backend_sched *sched) {
    for (int32_t k = 0; k < sched->n_results; ++k) {
        const int32_t i = sched->results[k];
        const struct sched_value *value = &sched->values[i];
        const bool marker = value->root != i && (value->traits & SCHED_NO_OP);
        if (marker && !(value->traits & SCHED_OUTPUT)) continue;
        sched->last[value->root] = (struct sched_last){SCHED_FOREVER, SCHED_NOT_USED};
    }
}

// Leafs that nobody uses stay.
static void keep_unused(struct ggml_backend_sched *sched) {
    for (int32_t k = 0; k < sched->n_early; ++k) {
        struct sched_last *last = &sched->last[sched->early[k]];
        if (last->step < 0) last->step = SCHED_FOREVER;
    }
}

// --- takeovers

// The source whose memory the node can have: nobody needs it any more, and the node
// itself reads it once. -1: none.
static int32_t find_source(const struct ggml_backend_sched *sched, int32_t node) {
    const struct sched_place *place = &sched->places[node];
    const int32_t begin = sched->first_edge[node], end = sched->first_edge[node + 1];
    for (int32_t e = begin; e < end; ++e) {
        const int32_t entry = sched->edges[e].entry;
        const struct sched_place *source = &sched->places[entry];
        if (!sched->edges[e].same_layout || sched->last[entry].edge != e) continue;
        if (source->pool != place->pool || source->size != place->size) continue;
        bool twice = false;
        for (int32_t other = begin; other < e; ++other) {
            twice |= sched->edges[other].entry == entry;
        }
        if (!twice) return entry;
    }
    return -1;
}

static inline void fetch_taker(const struct ggml_backend_sched *sched, int32_t node) {
    __builtin_prefetch(&sched->places[node], 1);
    __builtin_prefetch(&sched->edges[sched->first_edge[node]]);
    __builtin_prefetch(&sched->last[node]);
}

// Backwards, as memory lives as long as the last that takes it over.
static void find_takeovers(struct ggml_backend_sched *sched) {
    for (int32_t k = sched->n_inplace_steps - 1; k >= 0; --k) {
        const int32_t node = sched_value_at(sched, sched->inplace_steps[k]);
        if (k >= AHEAD) fetch_taker(sched, sched_value_at(sched, sched->inplace_steps[k - AHEAD]));
        const int32_t source = find_source(sched, node);
        if (source < 0) continue;
        sched->places[node].from = source;
        sched->last[source] = (struct sched_last){sched->last[node].step, SCHED_TAKEN};
    }
}

// Takeovers come last, since they compare final last uses, sizes and pools.
bool sched_find_liveness(struct ggml_backend_sched *sched) {
    if (!make_room(sched)) return false;
    sched->n_early = 0;
    for (int32_t c = 0; c < sched->n_copies; ++c) {
        sched->places[sched->n_values + c].pool = -1;
    }
    if (!sched->in_order || sched->reordered) note_early(sched);
    if (!note_all(sched)) return false;
    if (!note_all_copies(sched)) return false;
    keep_results(sched);
    keep_unused(sched);
    find_takeovers(sched);
    return true;
}
