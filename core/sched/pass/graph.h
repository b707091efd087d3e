// SPDX-License-Identifier: MIT
// The first pass turns a graph into arrays. Every tensor that the graph mentions becomes a "value"
// with a number: the nodes first, in order, then the leafs, then tensors that are only referred to.
// All later passes work on these numbers.
#ifndef GGML_SCHED_GRAPH_H
#define GGML_SCHED_GRAPH_H

#include "sched/pass/setup.h"

enum sched_trait {
    SCHED_VIEW_OP = 1 << 0,    // VIEW, RESHAPE, PERMUTE, TRANSPOSE
    SCHED_NO_OP = 1 << 1,      // NONE
    SCHED_INPUT = 1 << 2,      // flagged by the user
    SCHED_WEIGHT = 1 << 3,     // lies in a buffer of weights
    SCHED_DETACHED = 1 << 4,   // its operands must not decide where it runs
    SCHED_EXPERTS = 1 << 5,    // MUL_MAT_ID
    SCHED_HAS_MEMORY = 1 << 6, // before the scheduler gave it any
    SCHED_OUTPUT = 1 << 7,     // flagged by the user
    SCHED_EARLY = 1 << 8,      // flagged by the user: set before the first node is computed
    SCHED_HAS_WEIGHT = 1 << 9, // a node that reads a weight
    SCHED_USED = 1 << 10,      // is a source of some node
    SCHED_MAY_TAKE = 1 << 11,  // a node that may take over the memory of a source
    SCHED_SKIPPED = 1 << 12,   // a node that no device computes: an alternative, say
};

struct sched_value {
    struct ggml_tensor *tensor;
    size_t bytes;   // of its elements; 0 for what needs no memory: it has some, or is a view
    int32_t root;   // value that owns the memory; itself unless it is a view
    int32_t memory; // kind of memory of its own buffer, or -1
    uint16_t traits;
};

// A kind of memory, and who can use it.
struct sched_memory {
    ggml_backend_buffer_type_t buft;
    int32_t first_reader; // the first stream that can, or -1
    bool host;
};

// Use of a value as source `slot` of a node.
struct sched_edge {
    int32_t value;
    int32_t entry; // whose memory is read: the root of a view, or, in liveness, a copy
    int16_t slot;
    bool same_layout; // an operation that may overwrite the source can do so
};

// The result of numbering. Other passes only read it.
struct sched_graph {
    int32_t n_nodes, n_leafs, n_values;
    struct sched_value *values;
    int32_t *first_edge; // of each node, and the end
    struct sched_edge *edges;
    int32_t n_edges;
    bool in_order; // what a node refers to has a smaller number or is no node

    // Kinds of memory that tensors lie in: those of the streams first, as their pools are numbered.
    struct sched_memory *memories;
    int32_t n_memories;
    bool *readers; // [kind of memory][stream]
    int32_t n_streams;

    struct tensor_index ids; // values by address; empty after sched_graph_renew()
    int32_t values_capacity, first_edge_capacity, edges_capacity;
    int32_t memories_capacity, readers_capacity;
};

// Prepares an empty result: enters the kinds of memory of the streams; false after the error was
// set.
bool sched_graph_begin(const struct sched_setup *setup, size_t size_hint, struct sched_graph *out);
// Numbers a graph in O(nodes + edges). false after the error was set: the result is empty.
bool sched_graph_make(const struct sched_setup *setup, const struct ggml_cgraph *graph,
                      struct sched_graph *out);
// The same numbers for the tensors of a graph that is like the last one.
void sched_graph_renew(struct sched_graph *graph, struct ggml_tensor *const *tensors);
void sched_graph_free(struct sched_graph *graph);

static inline struct tensor_list sched_list(const struct sched_graph *graph) {
    return (struct tensor_list){graph->values, sizeof(graph->values[0])};
}

// Number of the tensor, or -1. After sched_graph_renew() the first call enters all addresses.
int32_t sched_graph_find(struct sched_graph *graph, const struct ggml_tensor *tensor);

// Whether the stream can use tensors in this kind of memory.
static inline bool sched_reads(const struct sched_graph *graph, int32_t memory, int32_t backend) {
    return graph->readers[(int64_t)memory * graph->n_streams + backend];
}

#endif
