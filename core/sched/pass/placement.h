// SPDX-License-Identifier: MIT
// The second pass: which stream computes which node, and why.
#ifndef GGML_SCHED_PLACEMENT_H
#define GGML_SCHED_PLACEMENT_H

#include "sched/pass/graph.h"

enum sched_reason {
#define SCHED_REASON_ROW(name, text) SCHED_REASON_##name,
#include "sched/pass/reason_list.inl"
};

// Whether a stream computes a node.
enum sched_answer { SCHED_NOT_ASKED, SCHED_UNSUPPORTED, SCHED_SUPPORTED };

// Where a value is computed or lies.
struct sched_placed {
    int32_t backend; // -1: not known yet, which only placement meets
    uint8_t reason;
};

// The result of placement. Passes after it only read it.
struct sched_placement {
    struct sched_placed *placed; // by value
    double seconds;              // predicted by cost-aware placement
    uint8_t *answers;            // [node][stream], enum sched_answer
    int32_t placed_capacity, answers_capacity;
};

// Places by rules, in O(nodes + edges) and the questions to devices; false after the error was set.
bool sched_place(const struct sched_setup *setup, const struct sched_graph *graph,
                 struct sched_placement *out);
// Moves nodes that write to the memory of another tensor to where that can be reached; false after
// the error was set.
bool sched_place_writers(const struct sched_setup *setup, const struct sched_graph *graph,
                         struct sched_placement *placement);
// Whether all nodes are on streams that the application allows; false after the error was set.
bool sched_is_allowed(const struct sched_setup *setup, const struct sched_graph *graph,
                      const struct sched_placement *placement);
void sched_placement_free(struct sched_placement *placement);

const char *sched_reason_text(enum sched_reason reason);
// Whether the stream computes the node; devices are asked once per node and stream.
bool sched_supports(const struct sched_setup *setup, const struct sched_graph *graph, int32_t node,
                    int32_t backend, struct sched_placement *placement);
// Whether the stream can read the value where it lies.
bool sched_readable(const struct sched_setup *setup, const struct sched_graph *graph,
                    const struct sched_placement *placement, int32_t value, int32_t backend);

static inline void sched_assign(struct sched_placement *placement, int32_t value, int32_t backend,
                                enum sched_reason reason) {
    placement->placed[value] = (struct sched_placed){backend, (uint8_t)reason};
}

#endif
