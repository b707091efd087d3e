// SPDX-License-Identifier: MIT
// What the scheduler needs of a stream beyond the public functions.
#ifndef GGML_DEVICE_STREAM_H
#define GGML_DEVICE_STREAM_H

#include "base/status.h"
#include "ggml-backend-impl.h"

// Waits for all queued work; the first failure of it, which is recorded. A stream that can't queue
// has nothing to wait for. [stream]
enum ggml_host_status stream_synchronize(ggml_backend_t backend);

// Lets the device reorder the nodes of the graph; nothing if it has no opinion. [stream]
void stream_graph_optimize(ggml_backend_t backend, struct ggml_cgraph *graph);

// Queues a copy behind the source's queued work and before the destination's later work; false: the
// destination can't, nothing was done, or the copy failed, which is recorded. [stream]
bool stream_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                       const struct ggml_tensor *src, struct ggml_tensor *dst);

#endif
