// SPDX-License-Identifier: MIT
// One graph per split, as streams compute it, in the order that their devices prefer.
#ifndef GGML_SCHED_SUBGRAPHS_H
#define GGML_SCHED_SUBGRAPHS_H

#include "sched/pass/partition.h"

// The graphs of all splits. Streams may look at them until their run is done.
struct sched_parts {
    struct ggml_graph *graphs; // by split
    int32_t graphs_capacity;
};

// The order of nodes and what else the graphs of splits have in common with those of a graph that
// repeats this one.
struct sched_subgraphs {
    const int32_t *order; // value by step; NULL: the numbers of nodes are their steps
    const int32_t *steps; // the inverse
    int32_t *order_room;  // for both
    int32_t *use_counts;  // by step
    uint64_t structure;   // of the first split; those of the others follow
    int32_t order_room_capacity, use_counts_capacity;
};

// Makes the graphs. Nodes of `source` get the order that devices prefer (graph_optimize), which is
// checked against the dependences. false after the error was set: the order is as it was.
bool sched_subgraphs_make(const struct sched_setup *setup, const struct sched_graph *graph,
                          const struct sched_partition *partition, struct ggml_cgraph *source,
                          struct sched_parts *parts, struct sched_subgraphs *out);
// The same for a graph that repeats the last one, in the order of that; devices are not asked
// again. false after the error was set, and nothing was changed.
bool sched_subgraphs_repeat(const struct sched_subgraphs *subgraphs,
                            const struct sched_graph *graph,
                            const struct sched_partition *partition, struct ggml_cgraph *source,
                            struct sched_parts *parts);
// Gives the nodes the order back that they had before devices changed it.
void sched_restore_order(const struct sched_graph *graph, struct ggml_cgraph *source);
void sched_subgraphs_free(struct sched_subgraphs *subgraphs);

// Node that is computed at a step.
static inline int32_t sched_node_at(const struct sched_subgraphs *subgraphs, int32_t step) {
    return subgraphs->order ? subgraphs->order[step] : step;
}

// Step at which a node is computed.
static inline int32_t sched_step_of(const struct sched_subgraphs *subgraphs, int32_t node) {
    return subgraphs->steps ? subgraphs->steps[node] : node;
}

#endif
