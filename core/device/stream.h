// SPDX-License-Identifier: MIT
// What the scheduler needs of a stream beyond the public functions.
#ifndef GGML_DEVICE_STREAM_H
#define GGML_DEVICE_STREAM_H

#include "ggml-backend-impl.h"

// Lets the device reorder the nodes of the graph; nothing if it has no opinion. [stream]
void stream_graph_optimize(ggml_backend_t backend, struct ggml_cgraph *graph);

#endif
