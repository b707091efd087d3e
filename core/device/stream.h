// SPDX-License-Identifier: MIT
// Functions of streams that only the scheduler needs.
#ifndef GGML_DEVICE_STREAM_H
#define GGML_DEVICE_STREAM_H

#include "base/status.h"
#include "device/stream_view.h"
#include "ggml-backend-impl.h"

// The object that a stream's member `host` points to.
struct stream_host {
    const void *maker; // stream_host_maker(): this copy of the library, or a plugin's
    void *counted;     // the device that it was counted for as alive
    struct use_memory uses;
};

// Waits for all queued work and returns its first failure, which is recorded. Nothing to do for a
// stream that can't queue. [stream]
enum ggml_host_status stream_synchronize(ggml_backend_t backend);

// Identity of this copy of the library. [any-thread]
const void *stream_host_maker(void);
// This copy's record about the stream; NULL if the stream was made without a wrapper of this copy.
// [any-thread]
static inline struct stream_host *stream_host_of(ggml_backend_t backend) {
    struct stream_host *own = backend->host;
    return own && own->maker == stream_host_maker() ? own : NULL;
}

// Lets the device reorder the nodes of the graph; nothing if it has no opinion. [stream]
void stream_graph_optimize(ggml_backend_t backend, struct ggml_graph *graph);

// As ggml_backend_graph_compute_async(), of a graph as streams see it. [stream]
enum ggml_status stream_graph_compute(const char *function, ggml_backend_t backend,
                                      const struct ggml_graph *graph);
// The check that it begins with: of the nodes, and that the stream computes. [stream]
bool stream_graph_check(const char *function, ggml_backend_t backend,
                        const struct ggml_graph *graph);
// The same without this check, which the graph has passed before. [stream]
enum ggml_status stream_graph_enter(const char *function, ggml_backend_t backend,
                                    const struct ggml_graph *graph);

// Queues a copy behind the source's queued work and before the destination's later work; false: the
// destination can't, nothing was done, or the copy failed, which is recorded. [stream]
bool stream_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                       const struct ggml_tensor *src, struct ggml_tensor *dst);

#endif
