// SPDX-License-Identifier: MIT
// The graph that the allocator sees: the splits in order, before each the copies that it needs.
#include <stdio.h>

#include "base/status.h"
#include "device/stream.h"
#include "sched/sched.h"

// Whether the allocator has to put two streams' tensors into different memory.
static bool same_pool(const struct ggml_backend_sched *sched, int a, int b) {
    return a == b || (a < sched->n_backends && b < sched->n_backends &&
                      sched->streams[a].pool == sched->streams[b].pool);
}

static bool add_node(struct ggml_backend_sched *sched, struct ggml_tensor *tensor,
                     int32_t backend) {
    const int n = sched->work.n_nodes;
    if (!sched_grow(&sched->work.nodes, &sched->work_nodes_capacity, (int64_t)n + 1,
                    sizeof(sched->work.nodes[0])) ||
        !sched_grow(&sched->node_ids, &sched->node_ids_capacity, (int64_t)n + 1,
                    sizeof(sched->node_ids[0]))) {
        return false;
    }
    if (n < sched->n_planned_nodes) {
        sched->ids_changed |= !same_pool(sched, sched->node_ids[n], backend);
    }
    sched->work.nodes[n] = tensor;
    sched->node_ids[n] = backend;
    sched->work.n_nodes++;
    return true;
}

static bool add_leaf(struct ggml_backend_sched *sched, struct ggml_tensor *tensor,
                     int32_t backend) {
    const int n = sched->work.n_leafs;
    if (!sched_grow(&sched->work.leafs, &sched->work_leafs_capacity, (int64_t)n + 1,
                    sizeof(sched->work.leafs[0])) ||
        !sched_grow(&sched->leaf_ids, &sched->leaf_ids_capacity, (int64_t)n + 1,
                    sizeof(sched->leaf_ids[0]))) {
        return false;
    }
    if (n < sched->n_planned_leafs) {
        sched->ids_changed |= !same_pool(sched, sched->leaf_ids[n], backend);
    }
    sched->work.leafs[n] = tensor;
    sched->leaf_ids[n] = backend;
    sched->work.n_leafs++;
    return true;
}

static bool add_slot(struct ggml_backend_sched *sched, struct ggml_tensor *tensor,
                     int32_t backend) {
    const int n = sched->slots.n_leafs;
    if (!sched_grow(&sched->slots.leafs, &sched->slots_capacity, (int64_t)n + 1,
                    sizeof(sched->slots.leafs[0])) ||
        !sched_grow(&sched->slot_ids, &sched->slot_ids_capacity, (int64_t)n + 1,
                    sizeof(sched->slot_ids[0]))) {
        return false;
    }
    if (n < sched->n_planned_slots) {
        sched->slots_changed |= !same_pool(sched, sched->slot_ids[n], backend);
    }
    sched->slots.leafs[n] = tensor;
    sched->slot_ids[n] = backend;
    sched->slots.n_leafs++;
    return true;
}

// Keeps the original's memory until the copy has been made.
static bool add_marker(struct ggml_backend_sched *sched, const struct sched_item *input) {
    const struct sched_item *root = &sched->items[input->root];
    if (root->traits & SCHED_HAS_MEMORY) return true;
    struct ggml_tensor *marker = tensor_pool_take(&sched_frame(sched)->pool);
    if (!marker) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to split the graph", sched->function);
        return false;
    }
    const struct ggml_tensor *tensor = input->tensor;
    marker->type = tensor->type;
    memcpy(marker->ne, tensor->ne, sizeof(marker->ne));
    memcpy(marker->nb, tensor->nb, sizeof(marker->nb));
    marker->view_src = root->tensor;
    marker->view_offs = tensor->view_offs;
    marker->src[0] = input->tensor;
    snprintf(marker->name, sizeof(marker->name), "%.48s (kept)", tensor->name);
    return add_node(sched, marker, input->backend);
}

static bool add_input(struct ggml_backend_sched *sched, int32_t copy) {
    const struct sched_copy *input = &sched->copies[copy];
    if (!add_marker(sched, &sched->items[input->item])) return false;
    return sched->n_copies > 1 || add_node(sched, sched_copy_tensor(sched, copy), input->backend);
}

static bool add_split(struct ggml_backend_sched *sched, const struct sched_split *split) {
    for (int32_t k = 0; k < split->n_inputs; ++k) {
        if (!add_input(sched, sched->inputs[split->first_input + k])) return false;
    }
    for (int32_t i = split->i_start; i < split->i_end; ++i) {
        if (!add_node(sched, sched->graph->nodes[i], split->backend)) return false;
    }
    return true;
}

static bool add_all_slots(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_copied; ++i) {
        for (int c = 0; c < sched->n_copies; ++c) {
            struct ggml_tensor *tensor = sched->copy_slots[(int64_t)i * sched->n_copies + c];
            if (!add_slot(sched, tensor, sched->copies[i].backend)) return false;
        }
    }
    return true;
}

bool sched_assemble(struct ggml_backend_sched *sched) {
    sched->work.n_nodes = sched->work.n_leafs = sched->slots.n_leafs = 0;
    sched->ids_changed = sched->slots_changed = false;
    for (int32_t i = 0; i < sched->n_splits; ++i) {
        if (!add_split(sched, &sched->splits[i])) return false;
    }
    for (int32_t i = 0; i < sched->n_leafs; ++i) {
        const struct sched_item *leaf = &sched->items[sched->n_nodes + i];
        if (!add_leaf(sched, leaf->tensor, leaf->backend)) return false;
    }
    return sched->n_copies == 1 || add_all_slots(sched);
}

bool sched_make_parts(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct sched_frame *frame = sched_frame(sched);
    sched->reordered = false;
    if (!sched_grow(&frame->graphs, &frame->graphs_capacity, sched->n_splits,
                    sizeof(frame->graphs[0]))) {
        return false;
    }
    for (int32_t i = 0; i < sched->n_splits; ++i) {
        const struct sched_split *split = &sched->splits[i];
        ggml_backend_t backend = sched->streams[split->backend].backend;
        struct ggml_cgraph *part = &frame->graphs[i];
        *part = ggml_graph_view(graph, split->i_start, split->i_end);
        part->uid = ggml_graph_next_uid();
        if (!backend->iface.graph_optimize) continue;
        stream_graph_optimize(backend, part);
        for (int32_t k = split->i_start; k < split->i_end; ++k) {
            sched->reordered |= graph->nodes[k] != sched->items[k].tensor;
        }
    }
    return true;
}

bool sched_split(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched->graph = NULL;
    sched->in_place = false;
    sched->n_rewrites = sched->n_splits = 0;
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
