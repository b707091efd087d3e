// SPDX-License-Identifier: MIT
// The graphs of splits: see subgraphs.h. Linear in nodes and edges.
#include "sched/pass/subgraphs.h"

#include <stdatomic.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "device/stream.h"
#include "device/stream_view.h"

// --- orders that devices prefer

// Whether the new order has each node of the split once; writes it and its inverse.
static bool is_permutation(const struct sched_graph *graph, const struct ggml_cgraph *source,
                           const struct sched_split *split, int32_t *order, int32_t *steps) {
    for (int32_t k = split->i_start; k < split->i_end; ++k) {
        steps[k] = -1;
    }
    for (int32_t k = split->i_start; k < split->i_end; ++k) {
        const int32_t value = tensor_index_get(&graph->ids, sched_list(graph), source->nodes[k]);
        if (value < split->i_start || value >= split->i_end || steps[value] >= 0) return false;
        steps[value] = k;
        order[k] = value;
    }
    return true;
}

// Whether a value that computes, or another's memory, was put behind one that needs it.
static bool is_behind(const struct sched_graph *graph, const struct sched_split *split,
                      const int32_t *steps, int32_t from, int32_t value) {
    return from >= split->i_start && from < value && steps[from] > steps[value] &&
           !ggml_op_is_empty(graph->values[from].tensor->op);
}

// Whether each node still comes after what it is computed from; memory is planned by that. Views
// may come after who reads them: they compute nothing.
static bool keeps_dependences(const struct sched_graph *graph, const struct sched_split *split,
                              const int32_t *steps) {
    for (int32_t value = split->i_start; value < split->i_end; ++value) {
        if (is_behind(graph, split, steps, graph->values[value].root, value)) return false;
        for (int32_t e = graph->first_edge[value]; e < graph->first_edge[value + 1]; ++e) {
            const struct sched_edge *edge = &graph->edges[e];
            if (is_behind(graph, split, steps, edge->value, value) ||
                is_behind(graph, split, steps, edge->entry, value)) {
                return false;
            }
        }
    }
    return true;
}

// Always false: the fault is that of a plugin.
static bool refuse_order(const struct sched_setup *setup, const struct sched_split *split,
                         const char *fault) {
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: graph_optimize of %s %s", setup->function,
              sched_stream_label(setup, split->backend), fault);
    return false;
}

// Devices may change the order of nodes and nothing else. Use counts follow the order.
static bool note_order(const struct sched_setup *setup, const struct sched_graph *graph,
                       const struct sched_partition *partition, const struct ggml_cgraph *source,
                       struct sched_subgraphs *out) {
    const int32_t n = graph->n_nodes;
    if (!ARRAY_GROW(out, order_room, 3 * (int64_t)n)) return false;
    int32_t *order = out->order_room, *steps = order + n, *counts = steps + n;
    for (int32_t s = 0; s < partition->n_splits; ++s) {
        const struct sched_split *split = &partition->splits[s];
        if (!is_permutation(graph, source, split, order, steps))
            return refuse_order(setup, split, "changed more than the order");
        if (!keeps_dependences(graph, split, steps))
            return refuse_order(setup, split, "put a node before one that it needs");
    }
    for (int32_t k = 0; k < n; ++k) {
        counts[k] = out->use_counts[order[k]];
    }
    memcpy(out->use_counts, counts, (size_t)n * sizeof(counts[0]));
    out->order = order;
    out->steps = steps;
    return true;
}

// --- the graphs

// Parts of one graph lie behind each other in its list of nodes, and so do their use counts.
static struct ggml_graph part_of(const struct sched_subgraphs *subgraphs,
                                 const struct sched_partition *partition,
                                 struct ggml_cgraph *source, int32_t i) {
    const struct sched_split *split = &partition->splits[i];
    return (struct ggml_graph){
        .size = sizeof(struct ggml_graph),
        .n_nodes = split->i_end - split->i_start,
        .nodes = source->nodes + split->i_start,
        .use_counts = subgraphs->use_counts + split->i_start,
        .structure = subgraphs->structure + (uint64_t)i,
        .uid = ggml_graph_next_uid(),
    };
}

// Numbers that no part had before. Streams are of one copy of the library: others have their own.
static uint64_t new_structures(int32_t n) {
    static atomic_uint_least64_t n_given;
    return atomic_fetch_add_explicit(&n_given, (uint64_t)n, memory_order_relaxed) + 1;
}

// *out_reordered: whether a device changed the order. false: one changed more than that.
static bool make_parts(const struct sched_setup *setup, const struct sched_graph *graph,
                       const struct sched_partition *partition, struct ggml_cgraph *source,
                       const struct sched_subgraphs *subgraphs, struct ggml_graph *parts,
                       bool *out_reordered) {
    *out_reordered = false;
    for (int32_t i = 0; i < partition->n_splits; ++i) {
        const struct sched_split *split = &partition->splits[i];
        ggml_backend_t backend = setup->streams[split->backend].backend;
        parts[i] = part_of(subgraphs, partition, source, i);
        if (!backend->table->graph_optimize) continue;
        const struct ggml_graph before = parts[i];
        stream_graph_optimize(backend, &parts[i]);
        for (int32_t k = split->i_start; k < split->i_end; ++k) {
            *out_reordered |= source->nodes[k] != graph->values[k].tensor;
        }
        if (memcmp(&parts[i], &before, sizeof(before)) != 0)
            return refuse_order(setup, split, "changed more than the order");
    }
    return true;
}

// One more than there are splits, so that the array is not NULL for an empty graph.
static bool room_for_parts(const struct sched_partition *partition, struct sched_parts *parts) {
    return ARRAY_GROW(parts, graphs, (int64_t)partition->n_splits + 1);
}

// Uses are counted over the whole graph: a fusion must not drop a result that another split reads.
bool sched_subgraphs_make(const struct sched_setup *setup, const struct sched_graph *graph,
                          const struct sched_partition *partition, struct ggml_cgraph *source,
                          struct sched_parts *parts, struct sched_subgraphs *out) {
    bool reordered;
    out->order = out->steps = NULL;
    if (!room_for_parts(partition, parts) || !ARRAY_GROW(out, use_counts, graph->n_nodes)) {
        return false;
    }
    ggml_graph_count_uses(source, out->use_counts);
    out->structure = new_structures(partition->n_splits);
    if (make_parts(setup, graph, partition, source, out, parts->graphs, &reordered) &&
        (!reordered || note_order(setup, graph, partition, source, out))) {
        return true;
    }
    sched_restore_order(graph, source);
    return false;
}

// The structure numbers stay, by which streams recognise what they have prepared.
bool sched_subgraphs_repeat(const struct sched_subgraphs *subgraphs,
                            const struct sched_graph *graph,
                            const struct sched_partition *partition, struct ggml_cgraph *source,
                            struct sched_parts *parts) {
    if (!room_for_parts(partition, parts)) return false;
    for (int32_t k = 0; k < graph->n_nodes && subgraphs->order; ++k) {
        source->nodes[k] = graph->values[subgraphs->order[k]].tensor;
    }
    for (int32_t i = 0; i < partition->n_splits; ++i) {
        parts->graphs[i] = part_of(subgraphs, partition, source, i);
    }
    return true;
}

void sched_restore_order(const struct sched_graph *graph, struct ggml_cgraph *source) {
    for (int32_t k = 0; k < graph->n_nodes; ++k) {
        source->nodes[k] = graph->values[k].tensor;
    }
}

void sched_subgraphs_free(struct sched_subgraphs *subgraphs) {
    ggml_mem_free(subgraphs->order_room);
    ggml_mem_free(subgraphs->use_counts);
}
