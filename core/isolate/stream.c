// SPDX-License-Identifier: MIT
// Streams of an isolated device. Each call waits for its answer.
#include <stdio.h>

#include "base/mem.h"
#include "device/check.h"
#include "isolate/encode.h"

struct isolated_stream {
    struct ggml_backend backend;
    struct isolated_device *device;
    uint64_t id;
    struct graph_cache cache;
};

static const char *stream_name(ggml_backend_t backend) {
    return ((struct isolated_stream *)backend->context)->device->channel.name;
}

static void free_graphs(struct isolated_stream *stream) {
    struct channel *channel = &stream->device->channel;
    for (int i = 0; i < ENCODE_GRAPHS; ++i) {
        struct isolate_request request = {.kind = ISOLATE_GRAPH_FREE,
                                          .graph = stream->cache.graphs[i].id};
        if (request.graph != 0) channel_ask(channel, &request, -1);
    }
    graph_cache_free(&stream->cache);
}

// A process that is gone has freed its side; nothing is recorded then.
static void stream_free(ggml_backend_t backend) {
    struct isolated_stream *stream = backend->context;
    struct isolated_device *device = stream->device;
    struct isolate_request request = {.kind = ISOLATE_STREAM_FREE, .id = stream->id};
    struct ggml_saved_error saved;
    ggml_error_save(&saved);
    free_graphs(stream);
    channel_ask(&device->channel, &request, -1);
    ggml_error_restore(&saved);
    ggml_mem_free(stream);
    atomic_fetch_sub(&device->n_alive, 1);
}

static enum ggml_host_status failure(enum ggml_host_status status,
                                     const struct isolate_answer *answer) {
    if (answer->compute == GGML_STATUS_ALLOC_FAILED) return GGML_HOST_OUT_OF_MEMORY;
    return answer->compute == GGML_STATUS_ABORTED ? GGML_HOST_ABORTED : status;
}

// The device can't have been busy for longer than the call took: the other process may say
// anything.
static void count_time(struct isolated_device *device, int64_t taken_ns, int64_t said_ns) {
    const int64_t busy_ns = MAX(said_ns, 0);
    atomic_fetch_add(&device->total_ns, taken_ns);
    atomic_fetch_add(&device->device_ns, MIN(busy_ns, taken_ns));
}

static int32_t stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct isolated_stream *stream = backend->context;
    struct channel *channel = &stream->device->channel;
    struct isolate_request request = {.kind = ISOLATE_COMPUTE, .id = stream->id};
    struct isolate_answer answer = {.compute = GGML_STATUS_FAILED};
    const int64_t start = wait_clock_ns();
    if (graph->n_nodes <= 0) return channel_usable(channel) ? GGML_HOST_OK : GGML_HOST_DEVICE_LOST;
    if (!channel_lock(channel)) return GGML_HOST_DEVICE_LOST;
    enum ggml_host_status status = graph_cache_encode(&stream->cache, graph, &request);
    if (status == GGML_HOST_OK) status = channel_call(channel, &request, -1, &answer);
    channel_unlock(channel);
    if (status == GGML_HOST_OK) {
        count_time(stream->device, wait_clock_ns() - start, answer.compute_ns);
        return GGML_HOST_OK;
    }
    graph_cache_drop(&stream->cache, request.graph);
    return failure(status, &answer);
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0x3d, 0x4e, 0x0c, 0x9b, 0x71, 0x2a, 0x45, 0xd8, 0x90, 0x1f, 0x6c, 0xe7, 0x58, 0xb3,
             0x24, 0xa6},
    .get_name = stream_name,
    .free = stream_free,
    .graph_compute = stream_compute,
};

ggml_backend_t isolated_stream_new(struct isolated_device *device, const char *params) {
    struct isolate_request request = {.kind = ISOLATE_STREAM_NEW, .flag = params != NULL};
    if (params && strlen(params) >= sizeof(request.text)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "parameters of more than %zu characters",
                  sizeof(request.text) - 1);
        return NULL;
    }
    if (params) snprintf(request.text, sizeof(request.text), "%s", params);
    if (!channel_usable(&device->channel)) return NULL;
    struct isolated_stream *stream = ggml_mem_calloc(1, sizeof(*stream));
    if (!stream) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a stream of %s", device->channel.name);
        return NULL;
    }
    request.id = stream->id = atomic_fetch_add(&device->next_id, 1) + 1;
    if (channel_ask(&device->channel, &request, -1) != GGML_HOST_OK) {
        ggml_mem_free(stream);
        return NULL;
    }
    stream->device = device;
    stream->cache.device = device;
    stream->backend = (struct ggml_backend){
        .table = &stream_table,
        .device = &device->base,
        .context = stream,
    };
    atomic_fetch_add(&device->n_alive, 1);
    return &stream->backend;
}
