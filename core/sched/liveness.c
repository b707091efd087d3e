// SPDX-License-Identifier: MIT
// Liveness of a partitioned graph: which values are there before the first step, the size of what
// needs memory, and how long copies and what they are made of live. alloc/liveness.c does what
// graphs without a partition need too. Entries are the values and, behind them, the copies.
#include "base/status.h"
#include "ggml-backend.h"
#include "sched/sched.h"

// One element more than there are entries, so that no array is NULL for an empty graph.
static bool make_room(struct ggml_backend_sched *sched) {
    const int64_t n = (int64_t)sched_entry_count(sched) + 1;
    return sched_grow(&sched->places, &sched->places_capacity, n, sizeof(sched->places[0])) &&
           sched_grow(&sched->last, &sched->last_capacity, n, sizeof(sched->last[0])) &&
           sched_grow(&sched->early, &sched->early_capacity, (int64_t)sched->n_values + 1,
                      sizeof(sched->early[0])) &&
           sched_grow(&sched->inplace_steps, &sched->inplace_steps_capacity,
                      (int64_t)sched->n_nodes + 1, sizeof(sched->inplace_steps[0]));
}

// Nothing has memory yet. `first` tells nodes that are set before the first step, as the user says.
static void begin_places(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched_entry_count(sched); ++i) {
        const bool early = i < sched->n_nodes && (sched->values[i].traits & SCHED_EARLY);
        sched->places[i] = (struct live_place){.pool = -1, .first = early ? -1 : 0, .from = -1};
    }
}

// --- nodes that are needed before they are computed

// Marks an entry that the node needs although it is computed after it.
static void note_need(struct ggml_backend_sched *sched, int32_t node, int32_t entry) {
    if (entry >= sched->n_nodes || entry == node) return;
    if (sched_step_of(sched, entry) >= sched_step_of(sched, node)) sched->places[entry].first = -1;
}

// They have to be there from the start.
static void note_early(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        note_need(sched, i, sched->values[i].root);
        for (int32_t e = sched->first_edge[i]; e < sched->first_edge[i + 1]; ++e) {
            note_need(sched, i, sched->values[sched->edges[e].value].root);
        }
    }
}

// --- sizes

// The entry needs memory of that stream, `size` bytes unless the memory says otherwise, from step
// `first` on; false with a message.
static inline bool reserve_entry(struct ggml_backend_sched *sched, struct live_place *place,
                                 const struct ggml_tensor *tensor, size_t size, int32_t backend,
                                 int32_t first) {
    const struct sched_stream *stream = &sched->streams[backend];
    const int32_t pool = stream->pool;
    if (UNLIKELY(stream->asks_size)) {
        size = ggml_backend_buft_get_alloc_size(sched->galloc->pools[pool].buft, tensor);
    }
    if (UNLIKELY(size > SIZE_MAX / 4 - stream->alignment)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: tensor '%s' of %zu bytes is too large",
                  sched->function, tensor->name, size);
        return false;
    }
    *place = (struct live_place){
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
static inline bool reserve(struct ggml_backend_sched *sched, int32_t entry, int32_t backend,
                           int32_t first) {
    const struct ggml_tensor *tensor = tensor_of(sched, entry);
    const size_t size = entry < sched->n_values ? sched->values[entry].bytes : ggml_nbytes(tensor);
    return reserve_entry(sched, &sched->places[entry], tensor, size, backend, first);
}

// Lists a value that lives from before the first step, unless its memory comes from elsewhere.
static bool reserve_early(struct ggml_backend_sched *sched, int32_t value) {
    if (!needs_place(&sched->values[value])) return true;
    sched->early[sched->n_early++] = value;
    return reserve(sched, value, sched->values[value].backend, -1);
}

static inline bool reserve_node(struct ggml_backend_sched *sched, int32_t node, int32_t step) {
    const struct sched_value *value = &sched->values[node];
    if (value->root != node) return true;
    if (sched->places[node].first < 0) return reserve_early(sched, node);
    return !needs_place(value) || reserve(sched, node, value->backend, step);
}

// Leafs and tensors that are only mentioned are set before the graph is computed; nodes live from
// their step.
static bool reserve_values(struct ggml_backend_sched *sched) {
    for (int32_t i = sched->n_nodes; i < sched->n_values; ++i) {
        if (sched->values[i].root == i && !reserve_early(sched, i)) return false;
    }
    for (int32_t step = 0; step < sched->n_nodes; ++step) {
        if (!reserve_node(sched, sched_value_at(sched, step), step)) return false;
    }
    return true;
}

// Copies live from the first step of the split that makes them; pipeline copies live for ever,
// elsewhere.
static bool reserve_copies(struct ggml_backend_sched *sched, const struct sched_split *split) {
    for (int32_t k = 0; k < split->n_inputs; ++k) {
        const int32_t number = sched->partition.inputs[split->first_input + k];
        const int32_t entry = sched->n_values + number;
        if (!reserve(sched, entry, sched->partition.copies[number].backend, split->i_start))
            return false;
    }
    return true;
}

static bool reserve_all(struct ggml_backend_sched *sched) {
    if (!reserve_values(sched)) return false;
    for (int32_t s = 0; s < sched->partition.n_splits && sched->pipeline_depth == 1; ++s) {
        if (!reserve_copies(sched, &sched->partition.splits[s])) return false;
    }
    return true;
}

// --- live ranges

// Originals are kept until they have been copied: through the first step of the split.
static void extend_originals(struct ggml_backend_sched *sched, struct liveness *liveness) {
    for (int32_t s = 0; s < sched->partition.n_splits; ++s) {
        const struct sched_split *split = &sched->partition.splits[s];
        for (int32_t k = 0; k < split->n_inputs; ++k) {
            const int32_t copy = sched->partition.inputs[split->first_input + k];
            const int32_t root = sched->values[sched->partition.copies[copy].value].root;
            liveness_extend(liveness, root, split->i_start, LIVE_COPIED);
        }
    }
}

static void find_ranges(struct ggml_backend_sched *sched) {
    struct liveness liveness = {
        .n_steps = sched->n_nodes,
        .n_entries = sched_entry_count(sched),
        .order = sched->order,
        .first_edge = sched->first_edge,
        .edges = sched->edges,
        .owners = sched->values,
        .owner_stride = sizeof(sched->values[0]),
        .owner_offset = offsetof(struct sched_value, root),
        .places = sched->places,
        .last = sched->last,
        .inplace_steps = sched->inplace_steps,
    };
    liveness_find_uses(&liveness);
    extend_originals(sched, &liveness);
    for (int32_t k = 0; k < sched->n_results; ++k) {
        liveness_keep(&liveness, sched->results[k]);
    }
    liveness_keep_unused(&liveness, sched->early, sched->n_early);
    liveness_find_takeovers(&liveness);
}

bool sched_find_liveness(struct ggml_backend_sched *sched) {
    if (!make_room(sched)) return false;
    sched->n_early = 0;
    begin_places(sched);
    if (!sched->in_order || sched->order) note_early(sched);
    if (!reserve_all(sched)) return false;
    find_ranges(sched);
    return true;
}
