// SPDX-License-Identifier: MIT
// The launches of a graph with everything looked up: pipelines, the device's addresses, barriers.
// Metal's command buffers serve once; encoding one from a recording asks for nothing else.
#ifndef METAL_QUEUE_RECORDING_H
#define METAL_QUEUE_RECORDING_H

#include "device/context.h"
#include "gpu/graph/graph_key.h"
#include "gpu/graph/plan.h"
#include "gpu/graph/tracker.h"

enum {
    METAL_MAX_RECORDINGS = 8,
    METAL_STEPS_PER_COMMIT = 128, // so that the device begins before the whole graph is encoded
};

struct metal_step {
    mtl_id pipeline; // the context's
    bool waits;      // for the steps before it in its command buffer
    unsigned grid[3], threads;
    struct gpu_args args;
};

struct metal_recording {
    struct gpu_graph_key key;
    uint64_t uid;        // of the graph that it was used for last; 0: none
    uint64_t generation; // of the context's buffers when that was
    uint64_t last_use;
    struct metal_step *steps;
    int n, room;
    mtl_id *used; // buffers that steps use, each once; kept alive by the application
    int n_used, room_used;
    mtl_id scratch; // a reference; NULL: no step needs any
};

// Looks up what the plan's launches need. key: of the graph, NULL: nobody will look for it.
// scratch: memory of plan->scratch_bytes, or NULL. The tracker is the caller's to lend. [stream]
enum ggml_host_status metal_recording_new(struct metal_context *context,
                                          const struct gpu_plan *plan,
                                          const struct gpu_graph_key *key, mtl_id scratch,
                                          struct gpu_tracker *tracker,
                                          struct metal_recording **out_recording);
// NULL does nothing. [stream]
void metal_recording_free(struct metal_recording *recording);
// Encodes steps [first, end) into a command buffer. OUT_OF_MEMORY, which the caller has to tell. A
// pool is open. [any-thread]
enum ggml_host_status metal_recording_encode(const struct metal_recording *recording, int first,
                                             int end, mtl_id commands);

#endif
