// SPDX-License-Identifier: MIT
// Streams: a command queue each, which runs command buffers in the order in which they are
// committed.
#ifndef METAL_QUEUE_STREAM_H
#define METAL_QUEUE_STREAM_H

#include "device/device.h"
#include "queue/encode.h"
#include "queue/plan.h"
#include "queue/recording.h"

enum { METAL_MAX_PENDING = 64 };

struct metal_pending {
    mtl_id commands, memory; // references; memory: that commands use and nobody else keeps, or NULL
};

struct metal_stream {
    struct ggml_backend backend;
    struct metal_device *device;
    struct metal_context *context;
    mtl_id queue;
    struct metal_pending
        pending[METAL_MAX_PENDING]; // committed and not waited for, the oldest first
    int n_pending;
    struct gpu_tracker tracker; // of the command buffer that is being recorded
    struct metal_planner planner;
    struct gpu_plan plan;
    struct gpu_graph_key key; // of the graph that is looked for
    struct metal_recording *recordings[METAL_MAX_RECORDINGS];
    int n_recordings;
    struct metal_encoders encoders; // threads that help to encode long graphs
    mtl_id scratch;                 // of scratch_bytes; NULL: no graph has needed any
    size_t scratch_bytes;
    uint64_t n_graphs;            // computed so far
    bool keeps_order;             // GGML_METAL_DISABLE_REORDER
    mtl_id mark;                  // an event for other streams, whose value grows
    uint64_t marks;               // its last value
    struct metal_failure failure; // that synchronize has not returned yet
    struct metal_stream *next;    // of the context's
};

// Bytes in staging memory that the host gets when it has waited for the commands that bring them
// there: n pieces.
struct metal_download {
    const struct metal_stream *stream;
    mtl_id commands, staging; // references
    char *host;
    size_t size, n, pitch, stride;
    uint64_t number; // grows from one download of the context's to the next
    struct metal_download *next;
};

int32_t metal_stream_new(struct metal_device *device, ggml_backend_t *out_stream);
// A command buffer that is filled next, which the caller releases. NULL after set_error. A pool is
// open. [stream]
mtl_id metal_stream_begin(struct metal_stream *stream);
// Commits it; the stream has a reference of its own. [stream]
void metal_stream_commit(struct metal_stream *stream, mtl_id commands);
// The same of commands that use memory which the stream keeps until they have ended.
void metal_stream_commit_with(struct metal_stream *stream, mtl_id commands, mtl_id memory);
// The stream behind a handle, NULL if it is none of this plugin. [any-thread]
struct metal_stream *metal_stream_of(ggml_backend_t backend);
// Whether nothing is queued. [stream]
bool metal_stream_is_idle(struct metal_stream *stream);
// Waits for all that is queued. [stream]
void metal_stream_drain(struct metal_stream *stream);
// What the stream queues from now on comes after what `other` has queued. A pool is open. [stream]
enum ggml_host_status metal_stream_follow(struct metal_stream *stream, struct metal_stream *other);
// Keeps a download, which it takes over and numbers. [stream]
void metal_download_add(struct metal_context *context, struct metal_download *download);
// Number of the newest download. [any-thread]
uint64_t metal_download_last(struct metal_context *context);
// Hands out what the stream has brought up to that number, which it waits for, and what others have
// brought by now. [any-thread]
void metal_downloads_finish(struct metal_context *context, const struct metal_stream *stream,
                            uint64_t number);
// Waits for what all streams of a context have committed. [any-thread]
void metal_streams_wait(struct metal_context *context);

// The table's entries that other files have.
int32_t metal_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph);
int32_t metal_stream_plan_create(ggml_backend_t backend, const struct ggml_graph *graph,
                                 ggml_backend_graph_plan_t *out_plan);
void metal_stream_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
int32_t metal_stream_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
int32_t metal_stream_optimize(ggml_backend_t backend, struct ggml_graph *graph);

#endif
