// SPDX-License-Identifier: MIT
// A graph as launches that are ready, kept for when it comes again. Several of them are the nodes
// of a graph of the driver's, which one call launches and in which independent ones may overlap.
#ifndef CUDA_QUEUE_RECORDING_H
#define CUDA_QUEUE_RECORDING_H

#include "device/context.h"
#include "gpu/graph/graph_key.h"
#include "queue/plan.h"
#include "queue/profile.h"

struct cuda_recording {
    struct cuda_context *context;
    struct gpu_graph_key key;
    struct gpu_graph_key places; // by which it was found last; no words: never
    uint64_t uid;                // of the graph for which it was found last, 0: not known
    uint64_t last_use;           // for choosing the one to be dropped or changed
    uint64_t shape;              // cuda_plan_shape()
    int n;                       // launches with work, of n_planned
    int n_planned;
    struct simt_work *works;
    // Which launches wait for which: those of launch i are before[first_before[i]] and so on.
    int32_t *first_before; // n + 1
    int32_t *before;       // room for so many
    int room;
    bool early;    // launches that wait for one other alone begin before that has ended
    CUgraph graph; // NULL: its launches are queued one by one
    CUgraphExec exec;
    CUgraphNode *nodes;       // of launches, in graph
    struct cuda_times *times; // NULL: it has no times of its nodes
};

// What a recording is made from.
struct cuda_recipe {
    struct cuda_context *context;
    const struct gpu_graph_key *key;
    const struct gpu_plan *plan;
    struct gpu_overlap *overlap; // for the work
    CUdeviceptr scratch;         // at least what the plan needs, or 0
    bool one_by_one;             // no graph of the driver's
    bool has_times;
};

// The context is current in all of these.
// A recording of a plan. [stream]
enum ggml_host_status cuda_recording_new(const struct cuda_recipe *recipe,
                                         struct cuda_recording **out_recording);
// Turns a recording into that of another plan, if they differ in arguments and blocks alone: the
// same kernels that wait for each other alike. *out_fits false: they don't, and nothing has
// changed. After a failure it can only be freed. [stream]
enum ggml_host_status cuda_recording_update(struct cuda_recording *recording,
                                            const struct cuda_recipe *recipe, bool *out_fits);
// Queues its launches. [stream]
enum ggml_host_status cuda_recording_queue(struct cuda_recording *recording, CUstream stream);
// NULL is ignored. Its last launch may be under way, but not its times. [stream]
void cuda_recording_free(struct cuda_recording *recording);

#endif
