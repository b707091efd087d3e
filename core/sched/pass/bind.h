// SPDX-License-Identifier: MIT
// Gives the tensors of a planned graph their addresses.
#ifndef GGML_SCHED_BIND_H
#define GGML_SCHED_BIND_H

#include "sched/pass/copies.h"
#include "sched/pass/plan.h"

// Sets data and buffer of every tensor that has none, and of the copies, after all buffers were
// told that their last tensors are gone. false, perhaps without a message, on failure: then none
// has a place.
bool sched_bind(const struct sched_setup *setup, const struct sched_graph *graph,
                const struct sched_liveness *live, const struct sched_plan *plan,
                const struct sched_partition *partition, const struct sched_copies *copies);
// Takes the places back.
void sched_unbind(const struct sched_graph *graph, const struct sched_partition *partition,
                  const struct sched_copies *copies);

#endif
