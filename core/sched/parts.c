// SPDX-License-Identifier: MIT
// The parts of a split graph, in the order that the streams' devices want.
#include "base/status.h"
#include "device/stream.h"
#include "sched/sched.h"

// Devices may change the order of nodes and nothing else.
static bool note_order(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    if (!sched_grow(&sched->order, &sched->order_capacity, sched->n_nodes,
                    sizeof(sched->order[0]))) {
        return false;
    }
    for (int32_t s = 0; s < sched->n_splits; ++s) {
        const struct sched_split *split = &sched->splits[s];
        for (int32_t k = split->i_start; k < split->i_end; ++k) {
            const int32_t item = sched_find_item(sched, graph->nodes[k]);
            sched->order[k] = item;
            if (item >= split->i_start && item < split->i_end) continue;
            ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: graph_optimize of %s changed more than the order",
                      sched->function, sched_stream_label(sched, split->backend));
            return false;
        }
    }
    return true;
}

static struct ggml_cgraph part_of(const struct ggml_backend_sched *sched, struct ggml_cgraph *graph,
                                  int32_t i) {
    const struct sched_split *split = &sched->splits[i];
    struct ggml_cgraph part = ggml_graph_view(graph, split->i_start, split->i_end);
    part.uid = ggml_graph_next_uid();
    return part;
}

// Answers whether some device changed the order.
static bool make_parts(struct ggml_backend_sched *sched, struct ggml_cgraph *graph,
                       struct ggml_cgraph *parts) {
    bool reordered = false;
    for (int32_t i = 0; i < sched->n_splits; ++i) {
        const struct sched_split *split = &sched->splits[i];
        ggml_backend_t backend = sched->streams[split->backend].backend;
        parts[i] = part_of(sched, graph, i);
        if (!backend->table->graph_optimize) continue;
        stream_graph_optimize(backend, &parts[i]);
        for (int32_t k = split->i_start; k < split->i_end; ++k) {
            reordered |= graph->nodes[k] != sched->items[k].tensor;
        }
    }
    return reordered;
}

static struct ggml_cgraph *room_for_parts(struct ggml_backend_sched *sched) {
    struct sched_frame *frame = sched_frame(sched);
    const bool done = sched_grow(&frame->graphs, &frame->graphs_capacity,
                                 (int64_t)sched->n_splits + 1, sizeof(frame->graphs[0]));
    return done ? frame->graphs : NULL;
}

bool sched_make_parts(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct ggml_cgraph *parts = room_for_parts(sched);
    sched->reordered = false;
    if (!parts) return false;
    sched->reordered = make_parts(sched, graph, parts);
    if (!sched->reordered || note_order(sched, graph)) return true;
    sched_restore_order(sched, graph);
    return false;
}

void sched_restore_order(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    for (int32_t k = 0; k < sched->n_nodes && sched->reordered; ++k)
        graph->nodes[k] = sched->items[k].tensor;
    sched->reordered = false;
}

// Devices are not asked again: the places that nodes have by now are those of this order.
bool sched_repeat_parts(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct ggml_cgraph *parts = room_for_parts(sched);
    if (!parts) return false;
    for (int32_t k = 0; k < sched->n_nodes && sched->reordered; ++k)
        graph->nodes[k] = sched->items[sched->order[k]].tensor;
    for (int32_t i = 0; i < sched->n_splits; ++i)
        parts[i] = part_of(sched, graph, i);
    return true;
}

bool sched_split(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched->graph = NULL;
    sched->in_place = false;
    sched->reordered = false;
    sched->n_rewrites = sched->n_splits = sched->n_copied = 0;
    sched_next_frame(sched);
    if (sched_index(sched, graph) && sched_place(sched) && sched_cut(sched) &&
        sched_make_parts(sched, graph)) {
        graph->uid = ggml_graph_next_uid();
        sched->graph = graph;
        sched->graph_uid = graph->uid;
        sched_log(sched, graph);
        return true;
    }
    sched_restore(sched, graph);
    sched->n_splits = 0;
    return false;
}
