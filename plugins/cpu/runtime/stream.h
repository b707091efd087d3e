// SPDX-License-Identifier: MIT
// Streams of the CPU device; they compute at once.
#ifndef CPU_STREAM_H
#define CPU_STREAM_H

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "runtime/profile.h"

// A stream on the device; NULL after telling the host. [any-thread]
ggml_backend_t cpu_stream_new(ggml_backend_dev_t device);

// Where its times are recorded; NULL if it is no stream of this plugin. [stream]
struct cpu_profile *cpu_stream_profile(ggml_backend_t backend);

void cpu_stream_set_n_threads(ggml_backend_t backend, int n_threads);
void cpu_stream_set_threadpool(ggml_backend_t backend, ggml_threadpool_t pool);
void cpu_stream_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback,
                                   void *data);
void cpu_stream_set_use_ref(ggml_backend_t backend, bool use_ref);

// Of ggml-plugin-cpu.h.
struct ggml_cplan cpu_graph_plan(const struct ggml_graph *graph, int n_threads,
                                 struct ggml_threadpool *pool);
enum ggml_status cpu_graph_compute(const struct ggml_graph *graph, const struct ggml_cplan *cplan);

#endif
