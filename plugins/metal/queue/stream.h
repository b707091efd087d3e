// SPDX-License-Identifier: MIT
// Streams: a command queue each, which runs command buffers in the order in which they are
// committed.
#ifndef METAL_QUEUE_STREAM_H
#define METAL_QUEUE_STREAM_H

#include "device/device.h"
#include "gpu/graph/tracker.h"

enum { METAL_MAX_PENDING = 64 };

struct metal_stream {
    struct ggml_backend backend;
    struct metal_device *device;
    struct metal_context *context;
    mtl_id queue;
    mtl_id pending[METAL_MAX_PENDING]; // committed and not waited for, the oldest first
    int n_pending;
    struct gpu_tracker tracker;   // of the command buffer that is being filled
    struct metal_failure failure; // that synchronize has not returned yet
    struct metal_stream *next;    // of the context's
};

int32_t metal_stream_new(struct metal_device *device, ggml_backend_t *out_stream);
// A command buffer that is filled next, which the caller releases. NULL after set_error. A pool is
// open. [stream]
mtl_id metal_stream_begin(struct metal_stream *stream);
// Commits it; the stream has a reference of its own. [stream]
void metal_stream_commit(struct metal_stream *stream, mtl_id commands);
// Waits for what all streams of a context have committed. [any-thread]
void metal_streams_wait(struct metal_context *context);

// The table's entries that other files have.
int32_t metal_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph);

#endif
