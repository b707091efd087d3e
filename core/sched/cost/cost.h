// SPDX-License-Identifier: MIT
// Cost-aware placement: the performance model and the two searches (beam, local) over it.
//
// The prediction of a placement is the sum over the nodes of what each takes on its stream, and
// over the copies, of which a value has one per stream that reads it and can't reach it.
#ifndef GGML_SCHED_COST_H
#define GGML_SCHED_COST_H

#include "base/data/arena.h"
#include "sched/pass/partition.h"
#include "sched/pass/subgraphs.h"

enum cost_kind {
    COST_SKIPPED, // computes nothing
    COST_FIXED,   // stays where the usual placement has it
    COST_FOLLOWS, // writes into the memory of a tensor that is computed: runs where that lies
    COST_FREE,
};

struct cost_link {
    double seconds;
    double seconds_per_byte;
    bool direct; // not through the host
};

// Arrays that are freed together.
struct cost_memory {
    struct arena arena;
    bool failed; // there was none for one of them
};

// A zeroed array; NULL when memory runs out.
void *cost_take(struct cost_memory *memory, size_t n, size_t element);

struct cost_model {
    struct cost_memory memory; // of the arrays
    const struct sched_setup *setup;
    const struct sched_graph *graph;
    struct sched_placement *placement;         // by rules; which answers of devices it has may grow
    const struct ggml_device_figures *figures; // by stream
    int32_t n_streams;
    bool limited;            // a stream may hold only so much
    struct cost_link *links; // [from][to]
    double *seconds;         // [node][stream]; negative: not possible
    double *bytes;           // [value] as it is allocated
    double *copied;          // [value] bytes of a copy of it
    double *held;            // [stream]: what lies there from the start
    int32_t *usual;          // [value] stream
    int32_t *last_read;      // [value]: last node that reads it, or -1
    int32_t *last_touch;     // [value]: of a root, last node that uses its memory, or -1
    int32_t *n_readers;      // [value]
    uint8_t *kinds;          // [node]
    bool *has_followers;     // [node]
};

double cost_node_seconds(const struct ggml_device_figures *figures, const struct ggml_tensor *node);
struct cost_link cost_link_between(const struct sched_setup *setup, int32_t from, int32_t to);

// Improves a placement by the caller's figures; false after the error was set.
bool sched_place_by_cost(const struct sched_setup *setup, const struct sched_graph *graph,
                         struct sched_placement *placement);
// Prediction for the splits as they are, in which streams that queue work overlap. `slot`: of the
// run. false when memory runs out.
bool cost_elapsed(const struct sched_setup *setup, const struct sched_graph *graph,
                  const struct sched_placement *placement, const struct sched_partition *partition,
                  const struct sched_subgraphs *subgraphs, int slot, double *out_seconds);

// false when memory runs out; the caller frees model->memory in any case.
bool cost_model_init(struct cost_model *model, const struct sched_setup *setup,
                     const struct sched_graph *graph, struct sched_placement *placement);

// Whether stream b reaches the value where it lies if its root is on stream `from`.
static inline bool cost_reaches(const struct cost_model *model, int32_t value, int32_t from,
                                int32_t b) {
    const struct sched_graph *graph = model->graph;
    const int32_t own = graph->values[graph->values[value].root].memory;
    return from == b || sched_reads(graph, own >= 0 ? own : model->setup->streams[from].pool, b);
}

static inline double cost_of_copy(const struct cost_model *model, int32_t value, int32_t from,
                                  int32_t to) {
    const struct cost_link *link = &model->links[from * model->n_streams + to];
    return link->seconds + link->seconds_per_byte * model->copied[value];
}

static inline double cost_of_node(const struct cost_model *model, int32_t node, int32_t b) {
    return model->seconds[(int64_t)node * model->n_streams + b];
}

// Whether the edge is the first of its node to its value: the same source twice counts once.
bool cost_is_first_edge(const struct sched_graph *graph, int32_t node, int32_t edge);

struct cost_result {
    double seconds;
    bool fits; // the limits of memory
};

// Prediction of a placement: `place` has a stream for each root. false when memory runs out.
bool cost_walk(const struct cost_model *model, const int32_t *place,
               struct cost_result *out_result);
// Looks for the best placement that fits, over all orders of decisions at once, keeping the most
// promising: exact while there are few. Sets `place` and *out_result; `fits` is false if it found
// none. false when memory runs out.
bool cost_beam(const struct cost_model *model, int32_t *place, struct cost_result *out_result);
// Moves runs of nodes while the prediction shrinks, without regard to memory. false when memory
// runs out.
bool cost_improve(const struct cost_model *model, int32_t *place);

#endif
