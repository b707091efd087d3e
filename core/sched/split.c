// SPDX-License-Identifier: MIT
// Calls the passes that split a graph, in order, and takes back what they changed in it.
#include "sched/cost/cost.h"
#include "sched/sched.h"

// The new number tells the graph from others at the same address.
void sched_set_last_graph(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched->source = graph;
    sched->source_uid = graph->uid = ggml_graph_next_uid();
    sched_log(sched, graph);
}

// Addresses alone say nothing: a freed graph may have been followed by another there.
bool sched_is_last_graph(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    return sched->source == graph && graph->uid != 0 && graph->uid == sched->source_uid;
}

// By rules, then by cost if there are figures. What is not allowed is an error, not a choice.
static bool place(struct ggml_backend_sched *sched) {
    const struct sched_setup *setup = &sched->setup;
    return sched_place(setup, &sched->graph, &sched->placement) &&
           sched_place_writers(setup, &sched->graph, &sched->placement) &&
           (!setup->figures || sched_place_by_cost(setup, &sched->graph, &sched->placement)) &&
           sched_place_writers(setup, &sched->graph, &sched->placement) &&
           sched_is_allowed(setup, &sched->graph, &sched->placement);
}

// Copies are made in the order of the partition, whose rewrites nodes follow from then on.
static bool make_copies(struct ggml_backend_sched *sched, struct tensor_pool *pool) {
    const struct sched_graph *graph = &sched->graph;
    if (!sched_copies_make(&sched->setup, graph, &sched->partition, sched->runs.slot, pool,
                           &sched->copies)) {
        return false;
    }
    sched_read_copies(graph, &sched->partition, &sched->copies);
    return true;
}

// Each pass returns false after the error was set; what those before it did is taken back.
bool sched_split(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    const struct sched_setup *setup = &sched->setup;
    sched->bound = sched->cache.valid = sched->rules_changed = false;
    sched->subgraphs.order = sched->subgraphs.steps = NULL;
    sched_partition_clear(&sched->partition);
    struct tensor_pool *pool = sched_next_frame(&sched->setup, &sched->runs);
    if (sched_graph_make(setup, graph, &sched->graph) && place(sched) &&
        sched_partition(setup, &sched->graph, &sched->placement, &sched->partition) &&
        make_copies(sched, pool) &&
        sched_subgraphs_make(setup, &sched->graph, &sched->partition, graph,
                             &sched_frame(&sched->runs)->parts, &sched->subgraphs)) {
        sched_set_last_graph(sched, graph);
        return true;
    }
    sched_restore(sched, graph);
    sched_partition_clear(&sched->partition);
    return false;
}

// In the opposite order of the passes: addresses, order and sources of nodes.
void sched_restore(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched_read_originals(&sched->graph, &sched->partition);
    if (sched->bound) sched_unbind(&sched->graph, &sched->partition, &sched->copies);
    if (sched->subgraphs.order) sched_restore_order(&sched->graph, graph);
    sched->subgraphs.order = sched->subgraphs.steps = NULL;
    sched->partition.n_rewrites = 0;
    sched->bound = sched->cache.valid = false;
    sched->source = NULL;
    sched->source_uid = graph->uid = 0;
}

// Copies are few, and only questions of the application get that far: they are searched one by one.
int32_t sched_find_value(struct ggml_backend_sched *sched, const struct ggml_tensor *tensor) {
    if (sched->source_uid == 0) return -1;
    const int32_t number = sched_graph_find(&sched->graph, tensor);
    for (int32_t c = 0; c < sched->partition.n_copies && number < 0; ++c) {
        if (sched_copy_tensor(&sched->copies, c) == tensor) return sched->graph.n_values + c;
    }
    return number;
}
