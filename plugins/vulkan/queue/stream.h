// SPDX-License-Identifier: MIT
// A queue of work. Transfers are gathered in a command buffer that goes to the device with the next
// graph, event or wait, or when it is large enough to be worth it.
#ifndef GVK_STREAM_H
#define GVK_STREAM_H

#include "device/device.h"
#include "gpu/base/ring.h"
#include "memory/transfer.h"
#include "queue/recording.h"
#include "queue/timeline.h"

enum { GVK_MAX_RECORDINGS = 32, GVK_MAX_SPARES = 16 };

struct gvk_stream {
    struct ggml_backend backend;
    struct gvk_device *device;
    struct gvk_context *context;
    struct gvk_queue *queue;
    struct gvk_timeline *timeline;
    VkCommandPool pool;
    enum ggml_status late; // of a transfer: the next graph fails as well

    // Transfers.
    VkCommandBuffer open; // being recorded, or VK_NULL_HANDLE
    size_t open_bytes;
    struct gpu_tracker open_tracker;
    struct {
        VkCommandBuffer handle;
        uint64_t value; // of its last submission
    } spares[GVK_MAX_SPARES];
    int n_spares;
    int open_spare;
    struct gvk_buffer *staging; // NULL until it is needed
    struct gpu_ring ring;       // over staging

    // What the next submission waits for.
    struct gvk_wait waits[GVK_MAX_WAITS];
    uint32_t n_waits;

    // Graphs.
    struct gvk_plan plan;
    bool keeps_order;            // of graphs, whatever would be better
    struct gpu_graph_key key;    // of the graph that is being computed
    struct gpu_graph_key places; // of it, if its structure is known; else no words
    struct gvk_recording *recordings[GVK_MAX_RECORDINGS];
    int n_recordings;
    uint64_t n_graphs;
    struct gvk_buffer *scratch;
    struct gpu_tracker tracker;
    struct gvk_profile profile;
};

// NULL after telling why. [any-thread]
ggml_backend_t gvk_stream_new(struct gvk_device *device);
// The stream behind the host's object, NULL if it is not of this plugin. [any-thread]
struct gvk_stream *gvk_stream_of(ggml_backend_t backend);
// The command buffer that transfers are recorded into. VK_NULL_HANDLE after telling why. [stream]
VkCommandBuffer gvk_stream_commands(struct gvk_stream *stream);
// Submits what is open and then the commands, if there are any. [stream]
enum ggml_status gvk_stream_flush(struct gvk_stream *stream, VkCommandBuffer commands,
                                  uint64_t *out_value);
// Lets later work wait for that of another stream, whose ownership it shares. [stream]
void gvk_stream_wait_for(struct gvk_stream *stream, struct gvk_timeline *timeline, uint64_t value);
// Waits for all queued work. [stream]
enum ggml_status gvk_stream_finish(struct gvk_stream *stream);
// Whether nothing is queued. [stream]
bool gvk_stream_is_idle(struct gvk_stream *stream);

// Entries of the interface.
int32_t gvk_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph);
int32_t gvk_stream_optimize(ggml_backend_t backend, struct ggml_graph *graph);
int32_t gvk_stream_set_2d(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                          size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                          size_t stride_data);
int32_t gvk_stream_get_2d(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                          size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                          size_t stride_data);
int32_t gvk_stream_copy(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                        const struct ggml_tensor *src, struct ggml_tensor *dst);

#endif
