// SPDX-License-Identifier: MIT
// The tensors of copies. Nodes read them instead of the originals until the graph is restored.
#ifndef GGML_SCHED_COPIES_H
#define GGML_SCHED_COPIES_H

#include "sched/pass/partition.h"

// One tensor per copy and run in flight. The slot is that of the current run.
struct sched_copies {
    struct ggml_tensor **tensors; // pipeline_depth per copy
    int32_t tensors_capacity;
    int32_t depth, slot;
};

// Makes the tensors of all copies in the pool; false after the error was set.
bool sched_copies_make(const struct sched_setup *setup, const struct sched_graph *graph,
                       const struct sched_partition *partition, int32_t slot,
                       struct tensor_pool *pool, struct sched_copies *out);
// Makes nodes read the copies, or the originals again.
void sched_read_copies(const struct sched_graph *graph, const struct sched_partition *partition,
                       const struct sched_copies *copies);
void sched_read_originals(const struct sched_graph *graph, const struct sched_partition *partition);

// The tensor that the current run uses for a copy.
static inline struct ggml_tensor *sched_copy_tensor(const struct sched_copies *copies,
                                                    int32_t copy) {
    return copies->tensors[(int64_t)copy * copies->depth + copies->slot];
}

#endif
