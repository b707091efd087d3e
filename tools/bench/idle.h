// SPDX-License-Identifier: MIT
// Devices that support everything, return at once and compute nothing. Their memory is
// addresses only. Device 0 is a CPU.
#ifndef GGML_BENCH_IDLE_H
#define GGML_BENCH_IDLE_H

#include "ggml-backend.h"
#include "ggml-graph.h"

enum { IDLE_DEVICES = 512, IDLE_ALIGNMENT = 128 };

// Both stay for ever. [init]
ggml_backend_t idle_stream(int i);
ggml_backend_buffer_type_t idle_memory(int i);
// What says what the devices compute; NULL: everything, as before.
void idle_support_with(bool (*supports_op)(ggml_backend_dev_t, const struct ggml_tensor *));
// What the stream's entry graph_optimize is from now on; NULL: there is none.
void idle_optimize_with(int i, int32_t (*optimize)(ggml_backend_t, struct ggml_graph *));
// What the stream's entry graph_compute is from now on; NULL: as before.
void idle_compute_with(int i, int32_t (*compute)(ggml_backend_t, const struct ggml_graph *));

#endif
