// SPDX-License-Identifier: MIT
// What the scheduler needs of a stream beyond the public functions.
#ifndef GGML_DEVICE_STREAM_H
#define GGML_DEVICE_STREAM_H

#include "ggml-backend-impl.h"

// Lets the device reorder the nodes of the graph; nothing if it has no opinion. [stream]
void stream_graph_optimize(ggml_backend_t backend, struct ggml_cgraph *graph);

// Queues a copy behind the source's queued work and before the destination's later work; false: the
// destination can't, nothing was done, or the copy is refused, which is recorded. [stream]
bool stream_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                       const struct ggml_tensor *src, struct ggml_tensor *dst);

#endif
