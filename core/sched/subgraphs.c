// SPDX-License-Identifier: MIT
// One graph per split, as streams compute it. Devices may reorder their nodes (graph_optimize); the
// new order is checked against the dependences before it is used.
#include <stdatomic.h>

#include "base/status.h"
#include "device/stream.h"
#include "sched/sched.h"

// Whether the new order has each node of the split once; writes it and its inverse.
static bool is_permutation(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph,
                           const struct sched_split *split, int32_t *order, int32_t *steps) {
    for (int32_t k = split->i_start; k < split->i_end; ++k)
        steps[k] = -1;
    for (int32_t k = split->i_start; k < split->i_end; ++k) {
        const int32_t value =
            tensor_index_get(&sched->value_ids, sched_list(sched->values), graph->nodes[k]);
        if (value < split->i_start || value >= split->i_end || steps[value] >= 0) return false;
        steps[value] = k;
        order[k] = value;
    }
    return true;
}

// Whether a value that computes, or another's memory, was put behind one that needs it.
static bool is_behind(const struct ggml_backend_sched *sched, const struct sched_split *split,
                      const int32_t *steps, int32_t from, int32_t value) {
    return from >= split->i_start && from < value && steps[from] > steps[value] &&
           !ggml_op_is_empty(sched->values[from].tensor->op);
}

// Whether each node still comes after what it is computed from; memory is planned by that. Views
// may come after who reads them: they compute nothing.
static bool is_in_order(const struct ggml_backend_sched *sched, const struct sched_split *split,
                        const int32_t *steps) {
    for (int32_t value = split->i_start; value < split->i_end; ++value) {
        if (is_behind(sched, split, steps, sched->values[value].root, value)) return false;
        for (int32_t e = sched->first_edge[value]; e < sched->first_edge[value + 1]; ++e) {
            const int32_t from = sched->edges[e].value;
            if (is_behind(sched, split, steps, from, value) ||
                is_behind(sched, split, steps, sched->values[from].root, value)) {
                return false;
            }
        }
    }
    return true;
}

static bool refuse_order(const struct ggml_backend_sched *sched, const struct sched_split *split,
                         const char *fault) {
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: graph_optimize of %s %s", sched->function,
              sched_stream_label(sched, split->backend), fault);
    return false;
}

// Devices may change the order of nodes and nothing else.
static bool note_order(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    if (!sched_grow(&sched->order_room, &sched->order_capacity, 3 * (int64_t)sched->n_nodes,
                    sizeof(sched->order_room[0]))) {
        return false;
    }
    int32_t *order = sched->order_room, *steps = order + sched->n_nodes;
    int32_t *counts = steps + sched->n_nodes; // of uses, in the new order
    for (int32_t s = 0; s < sched->partition.n_splits; ++s) {
        const struct sched_split *split = &sched->partition.splits[s];
        if (!is_permutation(sched, graph, split, order, steps))
            return refuse_order(sched, split, "changed more than the order");
        if (!is_in_order(sched, split, steps))
            return refuse_order(sched, split, "put a node before one that it needs");
    }
    for (int32_t k = 0; k < sched->n_nodes; ++k)
        counts[k] = sched->use_counts[order[k]];
    memcpy(sched->use_counts, counts, (size_t)sched->n_nodes * sizeof(counts[0]));
    sched->order = order;
    sched->steps = steps;
    return true;
}

static struct ggml_graph part_of(const struct ggml_backend_sched *sched, struct ggml_cgraph *graph,
                                 int32_t i) {
    const struct sched_split *split = &sched->partition.splits[i];
    return (struct ggml_graph){
        .size = sizeof(struct ggml_graph),
        .n_nodes = split->i_end - split->i_start,
        .nodes = graph->nodes + split->i_start,
        .use_counts = sched->use_counts + split->i_start,
        .structure = sched->structure + (uint64_t)i,
        .uid = ggml_graph_next_uid(),
    };
}

// Numbers that no part had before. Streams are of one copy of the library: others have their own.
static void new_structures(struct ggml_backend_sched *sched) {
    static atomic_uint_least64_t n_given;
    sched->structure = atomic_fetch_add_explicit(&n_given, (uint64_t)sched->partition.n_splits,
                                                 memory_order_relaxed) +
                       1;
}

static bool count_uses(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    if (!sched_grow(&sched->use_counts, &sched->use_counts_capacity, sched->n_nodes,
                    sizeof(sched->use_counts[0]))) {
        return false;
    }
    ggml_graph_count_uses(graph, sched->use_counts);
    return true;
}

// *out_reordered: whether a device changed the order. false: one changed more than that.
static bool make_parts(const struct ggml_backend_sched *sched, struct ggml_cgraph *graph,
                       struct ggml_graph *parts, bool *out_reordered) {
    *out_reordered = false;
    for (int32_t i = 0; i < sched->partition.n_splits; ++i) {
        const struct sched_split *split = &sched->partition.splits[i];
        ggml_backend_t backend = sched->streams[split->backend].backend;
        parts[i] = part_of(sched, graph, i);
        if (!backend->table->graph_optimize) continue;
        const struct ggml_graph before = parts[i];
        stream_graph_optimize(backend, &parts[i]);
        for (int32_t k = split->i_start; k < split->i_end; ++k) {
            *out_reordered |= graph->nodes[k] != sched->values[k].tensor;
        }
        if (memcmp(&parts[i], &before, sizeof(before)) != 0)
            return refuse_order(sched, split, "changed more than the order");
    }
    return true;
}

static struct ggml_graph *room_for_parts(struct ggml_backend_sched *sched) {
    struct sched_frame *frame = sched_frame(sched);
    const bool done = sched_grow(&frame->graphs, &frame->graphs_capacity,
                                 (int64_t)sched->partition.n_splits + 1, sizeof(frame->graphs[0]));
    return done ? frame->graphs : NULL;
}

static void restore_nodes(const struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    for (int32_t k = 0; k < sched->n_nodes; ++k)
        graph->nodes[k] = sched->values[k].tensor;
}

bool sched_make_subgraphs(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct ggml_graph *parts = room_for_parts(sched);
    bool reordered;
    sched_read_copies(sched);
    if (!parts || !count_uses(sched, graph)) return false;
    new_structures(sched);
    if (make_parts(sched, graph, parts, &reordered) && (!reordered || note_order(sched, graph)))
        return true;
    restore_nodes(sched, graph);
    return false;
}

void sched_restore_order(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    if (sched->order) restore_nodes(sched, graph);
    sched->order = sched->steps = NULL;
}

// Devices are not asked again: the places that nodes have by now are those of this order.
bool sched_repeat_subgraphs(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct ggml_graph *parts = room_for_parts(sched);
    if (!parts) return false;
    for (int32_t k = 0; k < sched->n_nodes && sched->order; ++k)
        graph->nodes[k] = sched->values[sched->order[k]].tensor;
    for (int32_t i = 0; i < sched->partition.n_splits; ++i)
        parts[i] = part_of(sched, graph, i);
    return true;
}

// Takes back everything that the scheduler changed in the application's graph: sources, places,
// order.
void sched_restore(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched_read_originals(sched);
    for (int32_t i = 0; i < sched->n_values && sched->in_place; ++i) {
        if (sched->values[i].traits & SCHED_HAS_MEMORY) continue;
        sched->values[i].tensor->buffer = NULL;
        sched->values[i].tensor->data = NULL;
    }
    sched_restore_order(sched, graph);
    sched->partition.n_rewrites = 0;
    sched->caches.graph.repeatable = false;
    sched->in_place = false;
    sched->graph = NULL;
    sched->graph_uid = 0;
    graph->uid = 0;
}

bool sched_split(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched->graph = NULL;
    sched->in_place = false;
    sched->order = sched->steps = NULL;
    sched->partition.n_rewrites = sched->partition.n_splits = sched->partition.n_copies = 0;
    sched_next_frame(sched);
    if (sched_index(sched, graph) && sched_place(sched) &&
        sched_partition(sched, &sched->partition) && sched_make_copies(sched) &&
        sched_make_subgraphs(sched, graph)) {
        graph->uid = ggml_graph_next_uid();
        sched->graph = graph;
        sched->graph_uid = sched->value_ids_uid = graph->uid;
        sched_log(sched, graph);
        return true;
    }
    sched_restore(sched, graph);
    sched->partition.n_splits = 0;
    return false;
}
