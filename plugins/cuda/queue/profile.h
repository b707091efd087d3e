// SPDX-License-Identifier: MIT
// When the nodes of graphs are computed (extension "ggml.profile"), by events of the driver.
#ifndef CUDA_QUEUE_PROFILE_H
#define CUDA_QUEUE_PROFILE_H

#include "device/context.h"
#include "gpu/base/slices.h"
#include "gpu/graph/plan.h"

struct cuda_recording;
struct cuda_stream;

// Events of a recording: one before its launches, one after those of each span of nodes.
struct cuda_times {
    int n; // spans; one per launch with work
    struct gpu_span *spans;
    CUevent *events;  // n + 1; that of a launch which isn't the last of its span is not used
    CUgraphNode node; // that recorded the last event, while a graph is being made
    // Of the last time it was queued, until its slices were added.
    bool pending;
    uint64_t tag;
    uint64_t submit_ns;
};

// Of one stream. Zero-initialised is off.
struct cuda_profile {
    struct gpu_slices slices;
    CUevent anchor;       // reached at about
    uint64_t anchor_ns;   // this time of the host
    uint64_t last_end_ns; // of the last slice
};

extern const struct ggml_extension_profile cuda_profile_extension;

static inline bool cuda_profile_is_on(const struct cuda_profile *profile) {
    return profile->slices.all != NULL;
}

// The context is current in all of these.
// Room for the times of a plan's launches with work. [stream]
enum ggml_host_status cuda_times_new(struct cuda_context *context, const struct gpu_plan *plan,
                                     struct cuda_times **out_times);
// NULL is ignored. [stream]
void cuda_times_free(struct cuda_times *times);
// After launch i, if it is the last of its span: a node of a graph, or work of a stream, that
// records the event. [stream]
CUresult cuda_times_add_node(struct cuda_times *times, int i, CUgraph graph, CUgraphNode after);
CUresult cuda_times_record(struct cuda_times *times, int i, CUstream stream);
// Before a recording with times is queued: waits for the last time it was, whose events it uses
// again, adds their slices, and records the first event. [stream]
enum ggml_host_status cuda_profile_submit(struct cuda_stream *stream,
                                          struct cuda_recording *recording);
// Adds the slices of the work that is done. [stream]
void cuda_profile_collect(struct cuda_stream *stream);
// Before the stream goes: its event. [stream]
void cuda_profile_drop(struct cuda_stream *stream);

#endif
