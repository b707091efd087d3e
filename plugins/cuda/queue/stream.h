// SPDX-License-Identifier: MIT
// Streams: a driver's stream each, which keeps the order of what is queued.
#ifndef CUDA_QUEUE_STREAM_H
#define CUDA_QUEUE_STREAM_H

#include "device/device.h"
#include "memory/scratch.h"
#include "queue/profile.h"
#include "queue/recording.h"

// Of one shape: graphs that take turns, as with double buffering, are both found again; a third one
// changes the older of the two in place.
enum { CUDA_MAX_RECORDINGS = 32, CUDA_RECORDINGS_ALIKE = 2 };

struct cuda_stream {
    struct ggml_backend backend;
    struct cuda_device *device;
    struct cuda_context *context;
    CUstream handle;
    CUevent mark; // what a copy from or to another stream waits for

    // Graphs.
    struct gpu_plan plan;
    struct gpu_graph_key key;    // of the graph that is being computed
    struct gpu_graph_key places; // of it, if its structure is known; else no words
    struct gpu_overlap *overlap; // NULL until a graph is recorded
    struct cuda_recording *recordings[CUDA_MAX_RECORDINGS];
    int n_recordings;
    uint64_t n_graphs;
    struct cuda_scratch scratch; // what launches keep between two of a node
    bool one_by_one;             // GGML_CUDA_DISABLE_GRAPHS
    bool keeps_order;            // of graphs, whatever would be better
    struct cuda_profile profile;
};

int32_t cuda_stream_new(struct cuda_device *device, ggml_backend_t *out_stream);
// The stream behind a handle, NULL if it is none of this plugin. [any-thread]
struct cuda_stream *cuda_stream_of(ggml_backend_t backend);

// Records its mark, for others to wait for. [stream]
enum ggml_host_status cuda_stream_mark(struct cuda_stream *stream);

// The table's entries that other files have.
int32_t cuda_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph);
int32_t cuda_stream_optimize(ggml_backend_t backend, struct ggml_graph *graph);

#endif
