// SPDX-License-Identifier: MIT
// Streams: a driver's stream each, which keeps the order of what is queued.
#ifndef CUDA_QUEUE_STREAM_H
#define CUDA_QUEUE_STREAM_H

#include "device/device.h"

struct cuda_stream {
    struct ggml_backend backend;
    struct cuda_device *device;
    struct cuda_context *context;
    CUstream handle;
    CUevent mark; // what a copy from or to another stream waits for
};

int32_t cuda_stream_new(struct cuda_device *device, ggml_backend_t *out_stream);
// The stream behind a handle, NULL if it is none of this plugin. [any-thread]
struct cuda_stream *cuda_stream_of(ggml_backend_t backend);

// The table's entries that other files have.
int32_t cuda_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph);

#endif
