// SPDX-License-Identifier: MIT
// Liveness, in linear walks: what needs memory, and from which step on; one scan forward over the
// steps, in which the last use that is met is the last one; one backward for takeovers, as memory
// lives as long as the last that takes it over.
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

// Nodes that read a copy use its memory, not that of the original: any of a pipeline's, which live
// for ever. false when memory runs out.
static bool redirect_edges(const struct finder *finder) {
    const struct sched_partition *partition = finder->partition;
    const int32_t n_edges = finder->graph->n_edges;
    const int32_t depth = finder->setup->pipeline_depth;
    struct sched_liveness *out = finder->out;
    if (partition->n_rewrites == 0) return true;
    if (!ARRAY_GROW(out, edges, n_edges)) return false;
    memcpy(out->edges, finder->graph->edges, (size_t)n_edges * sizeof(out->edges[0]));
    for (int32_t i = 0; i < partition->n_rewrites; ++i) {
        const struct sched_rewrite *rewrite = &partition->rewrites[i];
        out->edges[rewrite->edge].entry = finder->graph->n_values + rewrite->copy * depth;
    }
    return true;
}

// --- what needs memory, and from which step on

// Marks an entry that the node needs although it is computed after it.
static void note_need(const struct finder *finder, int32_t node, int32_t entry) {
    if (entry >= finder->graph->n_nodes || entry == node) return;
    if (sched_step_of(finder->subgraphs, entry) >= sched_step_of(finder->subgraphs, node)) {
        finder->out->ranges[entry].first = -1;
    }
}

// `first` of each node: -1 if it has to be there from the start, because the user says so or
// because a node needs it before it is computed.
static void note_early(const struct finder *finder) {
    const struct sched_graph *graph = finder->graph;
    const bool moved = !graph->in_order || finder->subgraphs->order;
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
    finder->out->ranges[entry] = (struct live_range){.size = GGML_PAD(size, stream->alignment),
                                                     .pool = stream->pool,
                                                     .root = entry,
                                                     .first = first};
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
            (struct live_range){.pool = -1, .root = owner->root, .first = first};
        return true;
    }
    const int32_t backend = finder->placement->placed[value].backend;
    return reserve(finder, value, owner->tensor, owner->bytes, backend, first);
}

// The memory of one copy, or of all that a pipeline has of it.
static bool reserve_copy(const struct finder *finder, int32_t number, int32_t first) {
    const struct sched_copy *copy = &finder->partition->copies[number];
    const struct ggml_tensor *original = finder->graph->values[copy->value].tensor;
    const int32_t depth = finder->setup->pipeline_depth;
    bool good = true;
    for (int32_t slot = 0; slot < depth && good; ++slot) {
        const int32_t entry = finder->graph->n_values + number * depth + slot;
        good = reserve(finder, entry, original, ggml_nbytes(original), copy->backend, first);
    }
    return good;
}

// Copies live from the first step of the split that makes them, those of a pipeline always: other
// runs use them meanwhile.
static bool reserve_copies(const struct finder *finder) {
    const struct sched_partition *partition = finder->partition;
    bool good = true;
    if (finder->setup->pipeline_depth > 1) {
        for (int32_t i = 0; i < partition->n_copies && good; ++i) {
            good = reserve_copy(finder, i, -1);
        }
        return good;
    }
    for (int32_t s = 0; s < partition->n_splits; ++s) {
        const struct sched_split *split = &partition->splits[s];
        for (int32_t k = 0; k < split->n_inputs && good; ++k) {
            good = reserve_copy(finder, partition->inputs[split->first_input + k], split->i_start);
        }
    }
    return good;
}

// Early entries (leafs, tensors that are only mentioned, some nodes), copies and nodes are listed
// in this order, so that an entry that takes memory over comes behind the one it takes it from.
static bool reserve_all(const struct finder *finder) {
    const struct sched_graph *graph = finder->graph;
    const struct live_range *ranges = finder->out->ranges;
    for (int32_t i = graph->n_nodes; i < graph->n_values; ++i) {
        if (!reserve_value(finder, i, -1)) return false;
    }
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        if (ranges[i].first < 0 && !reserve_value(finder, i, -1)) return false;
    }
    finder->out->n_early = finder->out->n_numbers;
    if (!reserve_copies(finder)) return false;
    for (int32_t step = 0; step < graph->n_nodes; ++step) {
        const int32_t node = sched_node_at(finder->subgraphs, step);
        if (ranges[node].first >= 0 && !reserve_value(finder, node, step)) return false;
    }
    return true;
}

// --- last uses

// `edge` is -1 where the use is no source of a node: then nothing takes the memory over.
static inline void set_last(struct live_range *range, int32_t step, int32_t edge) {
    range->last = step;
    range->edge = edge;
}

// Uses by nodes. A view as a node is a use of the memory that it views. An entry that lives from
// before its step is written then even if all who read it come before.
static void find_uses(const struct finder *finder, const struct sched_edge *edges) {
    struct sched_liveness *out = finder->out;
    const int32_t *first_edge = finder->graph->first_edge;
    for (int32_t i = 0; i < out->n_entries; ++i) {
        out->ranges[i].last = out->ranges[i].edge = out->ranges[i].from = -1;
    }
    for (int32_t step = 0; step < finder->graph->n_nodes; ++step) {
        const int32_t node = sched_node_at(finder->subgraphs, step);
        struct live_range *range = &out->ranges[node];
        if (range->root != node) set_last(&out->ranges[range->root], step, -1);
        for (int32_t e = first_edge[node]; e < first_edge[node + 1]; ++e) {
            set_last(&out->ranges[edges[e].entry], step, e);
        }
        if (range->root == node && range->pool >= 0 && range->first < step)
            set_last(range, step, -1);
    }
}

// Outputs, and nodes that no other uses, except views that compute nothing, which only mark a
// dependency.
static inline bool is_result(const struct sched_graph *graph, int32_t value) {
    const uint32_t traits = graph->values[value].traits;
    if (traits & (SCHED_OUTPUT | SCHED_USED)) return (traits & SCHED_OUTPUT) != 0;
    const bool marker = graph->values[value].root != value && (traits & SCHED_NO_OP);
    return value < graph->n_nodes && !marker;
}

// The value is read at this step.
static void keep_until(const struct finder *finder, int32_t value, int32_t step) {
    struct live_range *root = &finder->out->ranges[finder->graph->values[value].root];
    if (root->last < step) set_last(root, step, -1);
}

// Originals are kept until they have been copied: through the first step of the split. Results,
// leafs without a use and a pipeline's copies are never released, nor inputs where their memory,
// used again, could still be read when the user overwrites them.
static void keep(const struct finder *finder) {
    const struct sched_partition *partition = finder->partition;
    const struct sched_graph *graph = finder->graph;
    struct live_range *ranges = finder->out->ranges;
    for (int32_t s = 0; s < partition->n_splits; ++s) {
        const struct sched_split *split = &partition->splits[s];
        for (int32_t k = 0; k < split->n_inputs; ++k) {
            const int32_t copy = partition->inputs[split->first_input + k];
            keep_until(finder, partition->copies[copy].value, split->i_start);
            // By these the copy of a weight of experts is made.
            const int32_t ids = partition->copies[copy].expert_ids;
            if (ids >= 0) keep_until(finder, ids, split->i_start);
        }
    }
    for (int32_t i = 0; i < graph->n_values; ++i) {
        const bool rewritten = partition->used_late && (graph->values[i].traits & SCHED_INPUT);
        if (is_result(graph, i) || rewritten) set_last(&ranges[ranges[i].root], LIVE_FOREVER, -1);
    }
    for (int32_t k = 0; k < finder->out->n_early; ++k) {
        struct live_range *range = &ranges[finder->out->numbers[k]];
        if (range->last < 0) range->last = LIVE_FOREVER;
    }
    for (int32_t i = graph->n_values;
         i < finder->out->n_entries && finder->setup->pipeline_depth > 1; ++i) {
        set_last(&ranges[i], LIVE_FOREVER, -1);
    }
}

// --- takeovers

// The source whose memory the node can have: no later node needs it, and the node itself reads it
// once. That is never the node's own memory, which is kept if no other node reads it. -1: none.
static int32_t find_source(const struct finder *finder, const struct sched_edge *edges,
                           const struct live_range *known, int32_t node) {
    const struct live_range *ranges = finder->out->ranges;
    const int32_t begin = finder->graph->first_edge[node];
    const int32_t end = finder->graph->first_edge[node + 1];
    for (int32_t e = begin; e < end; ++e) {
        const int32_t from = edges[e].entry;
        const struct live_range *source = &ranges[from];
        if (!edges[e].same_layout || source->edge != e) continue;
        if (known && known[node].from != from) continue;
        const bool reachable = source->pool == ranges[node].pool || finder->setup->takes_any;
        if (source->pool < 0 || !reachable || source->size != ranges[node].size) continue;
        bool twice = false;
        for (int32_t other = begin; other < e; ++other) {
            twice |= edges[other].entry == from;
        }
        if (!twice) return from;
    }
    return -1;
}

// What takes memory over lies in that memory's pool, all else in that of its stream.
static void choose_pools(const struct finder *finder) {
    struct live_range *ranges = finder->out->ranges;
    for (int32_t step = 0; step < finder->graph->n_nodes && finder->setup->takes_any; ++step) {
        const int32_t node = sched_node_at(finder->subgraphs, step);
        const int32_t stream = finder->placement->placed[node].backend;
        struct live_range *range = &ranges[node];
        if (range->pool < 0) continue;
        range->pool =
            range->from < 0 ? finder->setup->streams[stream].pool : ranges[range->from].pool;
    }
}

// Last uses, then takeovers from the end, so that the last use of a node is final when its memory
// is given to another. An entry that lives from before its step takes nothing over. With `known`,
// the ranges of another graph by entry, a node only takes over what it took over there.
static void find_ranges(const struct finder *finder, const struct live_range *known) {
    struct sched_liveness *out = finder->out;
    const struct sched_edge *edges =
        finder->partition->n_rewrites > 0 ? out->edges : finder->graph->edges;
    find_uses(finder, edges);
    keep(finder);
    for (int32_t step = finder->graph->n_nodes - 1; step >= 0; --step) {
        const int32_t node = sched_node_at(finder->subgraphs, step);
        const struct live_range *range = &out->ranges[node];
        if (!(finder->graph->values[node].traits & SCHED_MAY_TAKE) || range->root != node ||
            range->pool < 0 || range->first < step) {
            continue;
        }
        const int32_t source = find_source(finder, edges, known, node);
        if (source < 0) continue;
        out->ranges[node].from = source;
        set_last(&out->ranges[source], out->ranges[node].last, -1);
    }
    choose_pools(finder);
}

// --- the plan that is known

// Whether what needs memory begins and is released as planned and is no larger, and all takeovers
// of the plan were possible. A smaller entry leaves a gap but overlaps nothing, and one that has
// memory by now needs none. O(entries).
static bool holds(const struct sched_liveness *live, const struct sched_buffer_plan *known) {
    bool same = true;
    for (int32_t i = 0; same && i < live->n_entries; ++i) {
        const struct live_range *now = &live->ranges[i], *then = &known->ranges[i];
        const bool taken =
            now->from == then->from || (then->from >= 0 && live->ranges[then->from].pool < 0);
        same = now->pool < 0 || (now->pool == then->pool && now->first == then->first &&
                                 now->size <= then->size && now->last == then->last && taken);
    }
    return same;
}

// With the takeovers of the known plan; if it does not hold then, with all that are possible.
bool sched_find_liveness(const struct sched_setup *setup, const struct sched_graph *graph,
                         const struct sched_placement *placement,
                         const struct sched_partition *partition,
                         const struct sched_subgraphs *subgraphs,
                         const struct sched_buffer_plan *known, struct sched_liveness *out) {
    const struct finder finder = {setup, graph, placement, partition, subgraphs, out};
    out->n_entries = graph->n_values + partition->n_copies * setup->pipeline_depth;
    out->n_numbers = 0;
    // One element more than there are entries, so that no array is NULL for an empty graph.
    const int64_t n = (int64_t)out->n_entries + 1;
    if (!ARRAY_GROW(out, ranges, n) || !ARRAY_GROW(out, numbers, n) || !redirect_edges(&finder))
        return false;
    note_early(&finder);
    if (!reserve_all(&finder)) return false;
    const bool tried = known && known->valid && known->n_entries == out->n_entries;
    find_ranges(&finder, tried ? known->ranges : NULL);
    out->held = tried && holds(out, known);
    if (tried && !out->held) find_ranges(&finder, NULL);
    return true;
}

void sched_liveness_free(struct sched_liveness *live) {
    ggml_mem_free(live->ranges);
    ggml_mem_free(live->edges);
    ggml_mem_free(live->numbers);
}
