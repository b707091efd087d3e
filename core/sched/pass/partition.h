// SPDX-License-Identifier: MIT
// The third pass: runs of nodes on one stream, and what each run needs from elsewhere.
#ifndef GGML_SCHED_PARTITION_H
#define GGML_SCHED_PARTITION_H

#include "sched/pass/placement.h"

// A value's double on a stream that can't read the original, with one tensor per run in flight.
struct sched_copy {
    int32_t value;
    int32_t backend;
    int32_t next;       // further copies of the value, or -1
    int32_t i_made;     // first node of the split that makes it
    int32_t expert_ids; // value with the only experts that are used; -1: all
    bool with_original; // an input on its own stream: the original is one of the tensors
};

struct sched_split {
    int32_t backend;
    int32_t i_start;
    int32_t i_end;
    int32_t first_input; // into `inputs`
    int32_t n_inputs;
    int32_t first_wait; // into `waits`
    int32_t n_waits;
};

// A source of a node was replaced by a copy.
struct sched_rewrite {
    int32_t node;
    int32_t edge;
    int32_t copy;
};

// No node has written to the value yet, or none of the graph does.
enum { SCHED_NOT_YET = -1, SCHED_NEVER = -2 };

// The result of sched_partition(), which other passes only read.
struct sched_partition {
    struct sched_split *splits;
    struct sched_copy *copies;
    int32_t *first_copy; // by value: of its copies, or -1
    int32_t *written;    // by value: the last node that wrote to it in place, or a SCHED_ below
    int32_t *inputs;     // copies that a split makes
    int32_t *waits;      // streams whose memory or results a split uses in place
    struct sched_rewrite *rewrites;
    bool used_late; // in place, memory of a stream that is done when the graph has been queued
    int32_t n_splits, n_copies, n_inputs, n_waits, n_rewrites;
    int32_t splits_capacity, copies_capacity, first_copy_capacity, inputs_capacity, waits_capacity;
    int32_t rewrites_capacity, written_capacity;
};

// Linear in nodes and edges, times the streams that a split waits for; false after the error was
// set.
bool sched_partition(const struct sched_setup *setup, const struct sched_graph *graph,
                     const struct sched_placement *placement, struct sched_partition *out);
void sched_partition_clear(struct sched_partition *partition);
void sched_partition_free(struct sched_partition *partition);

// Whether the copied value is a weight in host memory.
static inline bool sched_is_host_weight(const struct sched_graph *graph,
                                        const struct sched_copy *copy) {
    const struct sched_value *value = &graph->values[copy->value];
    const int32_t memory = graph->values[value->root].memory;
    return (value->traits & SCHED_WEIGHT) && memory >= 0 && graph->memories[memory].host;
}

#endif
