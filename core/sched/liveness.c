// SPDX-License-Identifier: MIT
// Liveness of a partitioned graph: which values are there before the first step, the size of what
// needs memory, and how long copies and what they are made of live. alloc/liveness.c does what
// graphs without a partition need too. Entries are the values and, behind them, the copies.
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"
#include "sched/sched.h"

// One element more than there are entries, so that no array is NULL for an empty graph.
static bool make_room(const struct ggml_backend_sched *sched, struct sched_liveness *out) {
    const int64_t n = (int64_t)sched_entry_count(sched) + 1;
    return sched_grow(&out->places, &out->places_capacity, n, sizeof(out->places[0])) &&
           sched_grow(&out->last, &out->last_capacity, n, sizeof(out->last[0])) &&
           sched_grow(&out->edges, &out->edges_capacity, (int64_t)sched->n_edges + 1,
                      sizeof(out->edges[0])) &&
           sched_grow(&out->early, &out->early_capacity, n, sizeof(out->early[0])) &&
           sched_grow(&out->inplace_steps, &out->inplace_steps_capacity, n,
                      sizeof(out->inplace_steps[0]));
}

// Nothing has memory yet. `first` tells nodes that are set before the first step, as the user says.
static void begin_places(const struct ggml_backend_sched *sched, struct sched_liveness *out) {
    out->n_early = 0;
    for (int32_t i = 0; i < sched_entry_count(sched); ++i) {
        const bool early = i < sched->n_nodes && (sched->values[i].traits & SCHED_EARLY);
        out->places[i] = (struct live_place){.pool = -1, .first = early ? -1 : 0, .from = -1};
    }
}

// Nodes that read a copy use its memory, not that of the original.
static void begin_edges(const struct ggml_backend_sched *sched, struct sched_liveness *out) {
    const struct sched_partition *partition = &sched->partition;
    if (sched->n_edges > 0) {
        memcpy(out->edges, sched->edges, (size_t)sched->n_edges * sizeof(out->edges[0]));
    }
    for (int32_t i = 0; i < partition->n_rewrites; ++i) {
        const struct sched_rewrite *rewrite = &partition->rewrites[i];
        out->edges[rewrite->edge].entry = sched->n_values + rewrite->copy;
    }
}

// --- nodes that are needed before they are computed

// Marks an entry that the node needs although it is computed after it.
static void note_need(const struct ggml_backend_sched *sched, int32_t node, int32_t entry,
                      struct sched_liveness *out) {
    if (entry >= sched->n_nodes || entry == node) return;
    if (sched_step_of(sched, entry) >= sched_step_of(sched, node)) out->places[entry].first = -1;
}

// They have to be there from the start.
static void note_early(const struct ggml_backend_sched *sched, struct sched_liveness *out) {
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        note_need(sched, i, sched->values[i].root, out);
        for (int32_t e = sched->first_edge[i]; e < sched->first_edge[i + 1]; ++e) {
            note_need(sched, i, sched->values[sched->edges[e].value].root, out);
        }
    }
}

// --- sizes

// The entry needs memory of that stream, `size` bytes unless the memory says otherwise, from step
// `first` on; false with a message.
static inline bool reserve_entry(const struct ggml_backend_sched *sched,
                                 const struct ggml_tensor *tensor, size_t size, int32_t backend,
                                 int32_t first, struct live_place *place) {
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

// Whether the value is one of its own pipeline copies.
static bool alternates(const struct sched_partition *partition, int32_t value) {
    int32_t copy = partition->first_copy[value];
    while (copy >= 0 && !partition->copies[copy].with_original) {
        copy = partition->copies[copy].next;
    }
    return copy >= 0;
}

static inline bool needs_place(const struct ggml_backend_sched *sched, int32_t value) {
    return !(sched->values[value].traits & SCHED_HAS_MEMORY) &&
           (sched->pipeline_depth == 1 || !alternates(&sched->partition, value));
}

// A copy has one tensor per pipeline slot: the one of the current run stands for all, as they are
// of one size.
static struct ggml_tensor *tensor_of(const struct ggml_backend_sched *sched, int32_t entry) {
    return entry < sched->n_values ? sched->values[entry].tensor
                                   : sched_copy_tensor(sched, entry - sched->n_values);
}

// Sets the size, the pool and the first step of an entry that needs memory.
static inline bool reserve(const struct ggml_backend_sched *sched, int32_t entry, int32_t backend,
                           int32_t first, struct sched_liveness *out) {
    const struct ggml_tensor *tensor = tensor_of(sched, entry);
    const size_t size = entry < sched->n_values ? sched->values[entry].bytes : ggml_nbytes(tensor);
    return reserve_entry(sched, tensor, size, backend, first, &out->places[entry]);
}

// Lists a value that lives from before the first step, unless its memory comes from elsewhere.
static bool reserve_early(const struct ggml_backend_sched *sched, int32_t value,
                          struct sched_liveness *out) {
    if (!needs_place(sched, value)) return true;
    out->early[out->n_early++] = value;
    return reserve(sched, value, sched->placed[value].backend, -1, out);
}

static inline bool reserve_node(const struct ggml_backend_sched *sched, int32_t node, int32_t step,
                                struct sched_liveness *out) {
    const struct sched_value *value = &sched->values[node];
    if (value->root != node) return true;
    if (out->places[node].first < 0) return reserve_early(sched, node, out);
    return !needs_place(sched, node) ||
           reserve(sched, node, sched->placed[node].backend, step, out);
}

// Leafs and tensors that are only mentioned are set before the graph is computed; nodes live from
// their step.
static bool reserve_values(const struct ggml_backend_sched *sched, struct sched_liveness *out) {
    for (int32_t i = sched->n_nodes; i < sched->n_values; ++i) {
        if (sched->values[i].root == i && !reserve_early(sched, i, out)) return false;
    }
    for (int32_t step = 0; step < sched->n_nodes; ++step) {
        if (!reserve_node(sched, sched_value_at(sched, step), step, out)) return false;
    }
    return true;
}

// Copies live from the first step of the split that makes them; pipeline copies live for ever,
// elsewhere.
static bool reserve_copies(const struct ggml_backend_sched *sched, struct sched_liveness *out) {
    const struct sched_partition *partition = &sched->partition;
    for (int32_t s = 0; s < partition->n_splits && sched->pipeline_depth == 1; ++s) {
        const struct sched_split *split = &partition->splits[s];
        for (int32_t k = 0; k < split->n_inputs; ++k) {
            const int32_t number = partition->inputs[split->first_input + k];
            const int32_t backend = partition->copies[number].backend;
            if (!reserve(sched, sched->n_values + number, backend, split->i_start, out))
                return false;
        }
    }
    return true;
}

// --- live ranges

// Originals are kept until they have been copied: through the first step of the split.
static void extend_originals(const struct ggml_backend_sched *sched, struct liveness *liveness) {
    for (int32_t s = 0; s < sched->partition.n_splits; ++s) {
        const struct sched_split *split = &sched->partition.splits[s];
        for (int32_t k = 0; k < split->n_inputs; ++k) {
            const int32_t copy = sched->partition.inputs[split->first_input + k];
            const int32_t root = sched->values[sched->partition.copies[copy].value].root;
            liveness_extend(liveness, root, split->i_start, LIVE_COPIED);
        }
    }
}

static void find_ranges(const struct ggml_backend_sched *sched, struct sched_liveness *out) {
    struct liveness liveness = {
        .n_steps = sched->n_nodes,
        .n_entries = sched_entry_count(sched),
        .order = sched->order,
        .first_edge = sched->first_edge,
        .edges = out->edges,
        .owners = sched->values,
        .owner_stride = sizeof(sched->values[0]),
        .owner_offset = offsetof(struct sched_value, root),
        .places = out->places,
        .last = out->last,
        .inplace_steps = out->inplace_steps,
    };
    liveness_find_uses(&liveness);
    extend_originals(sched, &liveness);
    for (int32_t k = 0; k < sched->n_results; ++k) {
        liveness_keep(&liveness, sched->results[k]);
    }
    liveness_keep_unused(&liveness, out->early, out->n_early);
    liveness_find_takeovers(&liveness);
}

bool sched_find_liveness(const struct ggml_backend_sched *sched, struct sched_liveness *out) {
    if (!make_room(sched, out)) return false;
    begin_places(sched, out);
    begin_edges(sched, out);
    if (!sched->in_order || sched->order) note_early(sched, out);
    if (!reserve_values(sched, out) || !reserve_copies(sched, out)) return false;
    find_ranges(sched, out);
    return true;
}

void sched_liveness_free(struct sched_liveness *live) {
    ggml_mem_free(live->places);
    ggml_mem_free(live->last);
    ggml_mem_free(live->edges);
    ggml_mem_free(live->early);
    ggml_mem_free(live->inplace_steps);
}
