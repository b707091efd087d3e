// SPDX-License-Identifier: MIT
// Liveness of a partitioned graph: which values are there before the first step, the size of what
// needs memory, and how long copies and what they are made of live. alloc/liveness.c does what
// graphs without a partition need too.
#include "sched/pass/liveness.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"

// What the pass reads, and the result that it writes.
struct finder {
    const struct sched_setup *setup;
    const struct sched_graph *graph;
    const struct sched_placement *placement;
    const struct sched_partition *partition;
    const struct sched_subgraphs *subgraphs;
    struct sched_liveness *out;
};

// One element more than there are entries, so that no array is NULL for an empty graph.
static bool make_room(const struct finder *finder) {
    struct sched_liveness *out = finder->out;
    const int64_t n = (int64_t)out->n_entries + 1;
    return array_grow(&out->ranges, &out->ranges_capacity, n, sizeof(out->ranges[0])) &&
           array_grow(&out->last, &out->last_capacity, n, sizeof(out->last[0])) &&
           array_grow(&out->numbers, &out->numbers_capacity, n, sizeof(out->numbers[0])) &&
           array_grow(&out->inplace_steps, &out->inplace_steps_capacity, n,
                      sizeof(out->inplace_steps[0]));
}

// Not all copies need memory.
static void begin_copies(const struct finder *finder) {
    for (int32_t i = finder->graph->n_values; i < finder->out->n_entries; ++i) {
        finder->out->ranges[i] = (struct live_range){.pool = -1, .from = -1, .root = i};
    }
}

// Nodes that read a copy use its memory, not that of the original. false when memory runs out.
static bool begin_edges(const struct finder *finder) {
    const struct sched_partition *partition = finder->partition;
    const int32_t n_edges = finder->graph->n_edges;
    struct sched_liveness *out = finder->out;
    if (partition->n_rewrites == 0) return true;
    if (!array_grow(&out->edges, &out->edges_capacity, n_edges, sizeof(out->edges[0])))
        return false;
    memcpy(out->edges, finder->graph->edges, (size_t)n_edges * sizeof(out->edges[0]));
    for (int32_t i = 0; i < partition->n_rewrites; ++i) {
        const struct sched_rewrite *rewrite = &partition->rewrites[i];
        out->edges[rewrite->edge].entry = finder->graph->n_values + rewrite->copy;
    }
    return true;
}

// --- nodes that are needed before they are computed

// Marks an entry that the node needs although it is computed after it.
static void note_need(const struct finder *finder, int32_t node, int32_t entry) {
    if (entry >= finder->graph->n_nodes || entry == node) return;
    if (sched_step_of(finder->subgraphs, entry) >= sched_step_of(finder->subgraphs, node)) {
        finder->out->ranges[entry].first = -1;
    }
}

// `first` of each node: -1 if it has to be there from the start, because the user says so or, with
// `moved`, because a node needs it before it is computed.
static void note_early(const struct finder *finder, bool moved) {
    const struct sched_graph *graph = finder->graph;
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        finder->out->ranges[i].first = graph->values[i].traits & SCHED_EARLY ? -1 : 0;
    }
    for (int32_t i = 0; i < graph->n_nodes && moved; ++i) {
        note_need(finder, i, graph->values[i].root);
        for (int32_t e = graph->first_edge[i]; e < graph->first_edge[i + 1]; ++e) {
            note_need(finder, i, graph->edges[e].entry);
        }
    }
}

// --- sizes

// The entry needs memory of that stream for the tensor, which has `bytes`, from step `first` on;
// false after the error was set.
static inline bool reserve(const struct finder *finder, int32_t entry,
                           const struct ggml_tensor *tensor, size_t bytes, int32_t backend,
                           int32_t first) {
    const struct sched_stream *stream = &finder->setup->streams[backend];
    const size_t size =
        stream->asks_size ? ggml_backend_buft_get_alloc_size(stream->buft, tensor) : bytes;
    if (size > SIZE_MAX / 4 - stream->alignment) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: tensor '%s' of %zu bytes is too large",
                  finder->setup->function, tensor->name, size);
        return false;
    }
    finder->out->ranges[entry] = (struct live_range){
        .size = GGML_PAD(size, stream->alignment),
        .pool = stream->pool,
        .first = first,
        .from = -1,
        .root = entry,
    };
    finder->out->numbers[finder->out->n_numbers++] = entry;
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

// The range of a value: it needs memory from step `first` on, unless it is a view, has some or
// alternates between pipeline copies.
static inline bool reserve_value(const struct finder *finder, int32_t value, int32_t first) {
    const struct sched_value *owner = &finder->graph->values[value];
    if (owner->root != value || (owner->traits & SCHED_HAS_MEMORY) ||
        (finder->setup->pipeline_depth > 1 && alternates(finder->partition, value))) {
        finder->out->ranges[value] =
            (struct live_range){.pool = -1, .first = first, .from = -1, .root = owner->root};
        return true;
    }
    const int32_t backend = finder->placement->placed[value].backend;
    return reserve(finder, value, owner->tensor, owner->bytes, backend, first);
}

// Leafs, tensors that are only mentioned, and nodes that have to be there from the start, if there
// are such.
static bool reserve_early(const struct finder *finder, bool any_nodes) {
    const struct sched_graph *graph = finder->graph;
    for (int32_t i = graph->n_nodes; i < graph->n_values; ++i) {
        if (!reserve_value(finder, i, -1)) return false;
    }
    for (int32_t i = 0; i < graph->n_nodes && any_nodes; ++i) {
        if (finder->out->ranges[i].first < 0 && !reserve_value(finder, i, -1)) return false;
    }
    finder->out->n_early = finder->out->n_numbers;
    return true;
}

// Copies live from the first step of the split that makes them; pipeline copies live for ever,
// elsewhere.
static bool reserve_copies(const struct finder *finder) {
    const struct sched_partition *partition = finder->partition;
    const struct sched_graph *graph = finder->graph;
    for (int32_t s = 0; s < partition->n_splits && finder->setup->pipeline_depth == 1; ++s) {
        const struct sched_split *split = &partition->splits[s];
        for (int32_t k = 0; k < split->n_inputs; ++k) {
            const int32_t number = partition->inputs[split->first_input + k];
            const struct sched_copy *copy = &partition->copies[number];
            const struct ggml_tensor *original = graph->values[copy->value].tensor;
            if (!reserve(finder, graph->n_values + number, original, ggml_nbytes(original),
                         copy->backend, split->i_start)) {
                return false;
            }
        }
    }
    return true;
}

// The other nodes live from their step.
static bool reserve_nodes(const struct finder *finder, bool any_early) {
    const struct sched_subgraphs *subgraphs = finder->subgraphs;
    const struct live_range *ranges = finder->out->ranges;
    const int32_t n_nodes = finder->graph->n_nodes;
    for (int32_t step = 0; step < n_nodes; ++step) {
        const int32_t node = sched_node_at(subgraphs, step);
        if (any_early && ranges[node].first < 0) continue;
        if (!reserve_value(finder, node, step)) return false;
    }
    return true;
}

// --- live ranges

// Originals are kept until they have been copied: through the first step of the split.
static void extend_originals(const struct finder *finder, struct liveness *liveness) {
    const struct sched_partition *partition = finder->partition;
    for (int32_t s = 0; s < partition->n_splits; ++s) {
        const struct sched_split *split = &partition->splits[s];
        for (int32_t k = 0; k < split->n_inputs; ++k) {
            const int32_t copy = partition->inputs[split->first_input + k];
            const int32_t root = finder->graph->values[partition->copies[copy].value].root;
            liveness_extend(liveness, root, split->i_start, LIVE_COPIED);
        }
    }
}

// Hands the graph to alloc/liveness.c, in the order that it asks for.
static void find_ranges(const struct finder *finder, const struct live_range *known) {
    const struct sched_graph *graph = finder->graph;
    struct sched_liveness *out = finder->out;
    struct liveness liveness = {
        .n_steps = graph->n_nodes,
        .n_entries = out->n_entries,
        .order = finder->subgraphs->order,
        .first_edge = graph->first_edge,
        .edges = finder->partition->n_rewrites > 0 ? out->edges : graph->edges,
        .ranges = out->ranges,
        .last = out->last,
        .inplace_steps = out->inplace_steps,
    };
    liveness_find_uses(&liveness);
    extend_originals(finder, &liveness);
    for (int32_t k = 0; k < graph->n_results; ++k) {
        liveness_keep(&liveness, graph->results[k]);
    }
    liveness_keep_unused(&liveness, out->numbers, out->n_early);
    liveness_find_takeovers(&liveness, known);
}

// --- the plan that is known

// Whether what needs memory begins as planned and is no larger: a smaller entry leaves a gap but
// overlaps nothing, and one that has memory by now needs none. O(entries).
static bool may_hold(const struct sched_liveness *live, const struct sched_buffer_plan *known) {
    bool same = known->valid && known->n_entries == live->n_entries;
    for (int32_t i = 0; same && i < live->n_entries; ++i) {
        const struct live_range *now = &live->ranges[i], *then = &known->ranges[i];
        same = now->pool < 0 ||
               (now->pool == then->pool && now->first == then->first && now->size <= then->size);
    }
    return same;
}

// Whether all takeovers of the plan were possible, and memory is released as planned. O(entries).
static bool holds(const struct sched_liveness *live, const struct sched_buffer_plan *known) {
    bool same = true;
    for (int32_t i = 0; same && i < live->n_entries; ++i) {
        const int32_t from = known->ranges[i].from;
        same = live->ranges[i].pool < 0 ||
               ((live->ranges[i].from == from || (from >= 0 && live->ranges[from].pool < 0)) &&
                live->last[i].step == known->last[i].step);
    }
    return same;
}

// Live ranges with the takeovers of the plan; if it does not hold then, with all that are possible.
static void find_ranges_as(const struct finder *finder, const struct sched_buffer_plan *known) {
    struct sched_liveness *out = finder->out;
    const bool tried = known && may_hold(out, known);
    find_ranges(finder, tried ? known->ranges : NULL);
    out->held = tried && holds(out, known);
    if (!tried || out->held) return;
    for (int32_t k = 0; k < out->n_numbers; ++k) {
        out->ranges[out->numbers[k]].from = -1;
    }
    find_ranges(finder, NULL);
}

// Early entries, copies and nodes are listed in this order, so that an entry that takes memory over
// comes behind the one it takes it from.
bool sched_find_liveness(const struct sched_setup *setup, const struct sched_graph *graph,
                         const struct sched_placement *placement,
                         const struct sched_partition *partition,
                         const struct sched_subgraphs *subgraphs,
                         const struct sched_buffer_plan *known, struct sched_liveness *out) {
    const struct finder finder = {setup, graph, placement, partition, subgraphs, out};
    out->n_entries = graph->n_values + partition->n_copies;
    out->n_numbers = 0;
    const bool moved = !graph->in_order || subgraphs->order;
    const bool any_early = graph->any_early || moved; // among the nodes
    if (!make_room(&finder) || !begin_edges(&finder)) return false;
    begin_copies(&finder);
    if (any_early) note_early(&finder, moved);
    if (!reserve_early(&finder, any_early) || !reserve_copies(&finder) ||
        !reserve_nodes(&finder, any_early))
        return false;
    find_ranges_as(&finder, known);
    return true;
}

void sched_liveness_free(struct sched_liveness *live) {
    ggml_mem_free(live->ranges);
    ggml_mem_free(live->last);
    ggml_mem_free(live->edges);
    ggml_mem_free(live->numbers);
    ggml_mem_free(live->inplace_steps);
}
