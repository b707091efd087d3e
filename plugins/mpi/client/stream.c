// SPDX-License-Identifier: MIT
// Streams and events. What a stream is given it sends on at once; synchronize waits for the
// answers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

struct remote_stream {
    struct ggml_backend backend;
    struct remote_device *device;
    uint32_t queue;
    struct line line;
    struct graph_cache cache;
};

struct remote_event {
    struct ggml_backend_event event;
    struct node *node;
    struct remote_stream *stream; // that recorded it last
    uint32_t queue;
    uint64_t id; // of the request that it was recorded after
};

static const char *stream_name(ggml_backend_t backend) {
    return ((struct remote_stream *)backend->context)->device->name;
}

// --- queues of a node ----------------------------------------------------------------------------

// Takes the first free queue of a node (first fit in a bit set); 0, which is the node's own,
// when none is free.
static uint32_t take_queue(struct node *node) {
    uint32_t found = 0;
    pthread_mutex_lock(&node->client->lock);
    for (uint32_t i = 1; i < WIRE_MAX_QUEUES && found == 0; ++i) {
        const uint64_t bit = UINT64_C(1) << i % 64;
        if (node->queues[i / 64] & bit) continue;
        node->queues[i / 64] |= bit;
        found = i;
    }
    pthread_mutex_unlock(&node->client->lock);
    return found;
}

static void give_queue(struct node *node, uint32_t queue) {
    pthread_mutex_lock(&node->client->lock);
    node->queues[queue / 64] &= ~(UINT64_C(1) << queue % 64);
    pthread_mutex_unlock(&node->client->lock);
}

// --- work ----------------------------------------------------------------------------------------

static int32_t set_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                         size_t offset, size_t size) {
    struct remote_stream *stream = backend->context;
    return remote_set(stream->device->node, &stream->line, stream->queue, tensor, data, offset,
                      size);
}

static int32_t get_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                         size_t offset, size_t size) {
    struct remote_stream *stream = backend->context;
    return remote_get(stream->device->node, &stream->line, stream->queue, tensor, data, offset,
                      size);
}

// Has the end's queue wait until request `id` of another queue of the same node is done.
// Asynchronous: only the node waits.
static int32_t wait_for(const struct remote_end *end, uint32_t queue, uint64_t id) {
    struct wire_message message = {
        .kind = WIRE_WAIT, .queue = end->queue, .object = queue, .offset = id};
    return client_post(end->node, end->line, &message, NULL);
}

static struct remote_end end_of(struct remote_stream *stream, const struct ggml_tensor *tensor) {
    return (struct remote_end){.node = stream->device->node,
                               .line = &stream->line,
                               .queue = stream->queue,
                               .tensor = tensor};
}

// Within a node both queues wait for each other around the copy; between nodes the bytes do.
int32_t remote_copy(const struct remote_end *from, const struct remote_end *to) {
    if (from->node != to->node) return remote_copy_between(from, to);
    const bool waits = from->queue != to->queue;
    int32_t status = waits ? wait_for(to, from->queue, from->line->last) : GGML_HOST_OK;
    if (status == GGML_HOST_OK)
        status = remote_copy_within(to->node, to->line, to->queue, from->tensor, to->tensor);
    // What the source's queue does next may change what is still to be copied.
    if (status == GGML_HOST_OK && waits) status = wait_for(from, to->queue, to->line->last);
    return status;
}

// Whether the end's stream can reach its tensor.
static bool reaches(const struct remote_end *end) {
    const struct remote_buffer *buffer = remote_buffer_of(end->tensor);
    return buffer && buffer->node == end->node;
}

// UNSUPPORTED for memory of others, also of other nodes, and for gaps: the host then copies by way
// of its own memory.
static int32_t copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                          const struct ggml_tensor *src, struct ggml_tensor *dst) {
    if (backend_src->table != backend_dst->table) return GGML_HOST_UNSUPPORTED;
    if (!ggml_is_contiguous(src) || !ggml_is_contiguous(dst)) return GGML_HOST_UNSUPPORTED;
    const struct remote_end from = end_of(backend_src->context, src);
    const struct remote_end to = end_of(backend_dst->context, dst);
    if (!reaches(&from) || !reaches(&to) || !nodes_reach(from.node, to.node))
        return GGML_HOST_UNSUPPORTED;
    return remote_copy(&from, &to);
}

// A graph that failed is forgotten there, and it isn't known here which one it was; nor which of
// them lay in a buffer that was freed. The node keeps none that is never named again.
static void forget_graphs(struct remote_stream *stream) {
    struct node *node = stream->device->node;
    for (int i = 0; i < CLIENT_GRAPHS && !atomic_load(&node->lost); ++i) {
        struct wire_message message = {
            .kind = WIRE_GRAPH_FREE, .queue = stream->queue, .object = stream->cache.graphs[i].id};
        if (message.object != 0) client_post(node, &stream->line, &message, NULL);
    }
    graph_cache_free(&stream->cache);
}

// Waits for all answers; the first failure since the last call is returned and forgotten.
static int32_t synchronize(ggml_backend_t backend) {
    struct remote_stream *stream = backend->context;
    const int32_t status = line_wait(stream->device->node, &stream->line);
    if (status != GGML_HOST_OK) forget_graphs(stream);
    return status;
}

// Sends the difference to a graph that the node knows, or the whole graph; returns before it is
// computed. If anything fails on the way, the cache forgets the graph, as it isn't known what
// the node has.
static int32_t compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct remote_stream *stream = backend->context;
    struct node *node = stream->device->node;
    struct wire_message message = {.kind = WIRE_COMPUTE, .queue = stream->queue};
    struct wire_change *changes;
    uint64_t forgotten;
    if (!node_usable(node)) return GGML_HOST_DEVICE_LOST;
    if (graph->n_nodes <= 0) return GGML_HOST_OK;
    if (graph_cache_is_old(&stream->cache, node)) {
        const uint64_t generation = atomic_load(&node->generation);
        forget_graphs(stream);
        stream->cache.generation = generation;
    }
    int32_t status = graph_encode(&stream->cache, node, graph, &message, &changes, &forgotten);
    if (status != GGML_HOST_OK) return status;
    const struct parts parts = {.first = changes,
                                .first_size = (size_t)message.size * sizeof(*changes)};
    if (forgotten != 0) {
        struct wire_message forget = {
            .kind = WIRE_GRAPH_FREE, .queue = stream->queue, .object = forgotten};
        status = client_post(node, &stream->line, &forget, NULL);
    }
    if (status == GGML_HOST_OK) status = client_post(node, &stream->line, &message, &parts);
    free(changes);
    if (status != GGML_HOST_OK) graph_cache_drop(&stream->cache, message.object);
    return status;
}

// --- events --------------------------------------------------------------------------------------

static void event_free(ggml_backend_event_t event) {
    free(event->context);
}

static int32_t event_synchronize(ggml_backend_event_t handle) {
    const struct remote_event *event = handle->context;
    if (event->stream) line_wait_for(event->node, &event->stream->line, event->id);
    return GGML_HOST_OK;
}

static const struct ggml_event_table event_table = {
    .size = sizeof(event_table), .free = event_free, .synchronize = event_synchronize};

int32_t remote_event_new(struct remote_device *device, ggml_backend_event_t *out_event) {
    struct remote_event *event = calloc(1, sizeof(*event));
    if (!event) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for an event");
    event->node = device->node;
    event->event = (struct ggml_backend_event){
        .table = &event_table, .device = &device->base, .context = event};
    *out_event = &event->event;
    return GGML_HOST_OK;
}

// An event is a number: the id of the newest request. No message is sent.
static int32_t event_record(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct remote_stream *stream = backend->context;
    struct remote_event *event = handle->context;
    event->stream = stream;
    event->queue = stream->queue;
    event->id = stream->line.last;
    return GGML_HOST_OK;
}

// Work of another node is waited for here: nodes don't know how far others are.
static int32_t event_wait(ggml_backend_t backend, ggml_backend_event_t handle) {
    struct remote_stream *stream = backend->context;
    const struct remote_event *event = handle->context;
    if (!event->stream || event->stream == stream || event->id == 0) return GGML_HOST_OK;
    if (event->node != stream->device->node) return event_synchronize(handle);
    const struct remote_end end = end_of(stream, NULL);
    return wait_for(&end, event->queue, event->id);
}

// --- streams -------------------------------------------------------------------------------------

// Waits for what is under way before the queue is given to another stream.
static void stream_free(ggml_backend_t backend) {
    struct remote_stream *stream = backend->context;
    struct node *node = stream->device->node;
    struct wire_message message = {.kind = WIRE_STREAM_FREE, .queue = stream->queue};
    if (!atomic_load(&node->lost)) client_post(node, &stream->line, &message, NULL);
    line_drain(node, &stream->line);
    give_queue(node, stream->queue);
    graph_cache_free(&stream->cache);
    free(stream);
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(stream_table),
    .guid = {0x1f, 0x0a, 0x8c, 0x52, 0xe3, 0x94, 0x4b, 0x76, 0xa1, 0x0d, 0x3e, 0xc8, 0x77, 0x25,
             0xb9, 0x60},
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = set_async,
    .get_tensor_async = get_async,
    .cpy_tensor_async = copy_async,
    .synchronize = synchronize,
    .graph_compute = compute,
    .event_record = event_record,
    .event_wait = event_wait,
};

bool remote_stream_end(ggml_backend_t stream, struct remote_end *out_end,
                       struct remote_device **out_device) {
    if (stream->table != &stream_table) return false;
    struct remote_stream *remote = stream->context;
    *out_end = end_of(remote, NULL);
    *out_device = remote->device;
    return true;
}

// Blocks until the node has the stream; BUSY when it has no queue left.
int32_t remote_stream_new(struct remote_device *device, const char *params,
                          ggml_backend_t *out_stream) {
    struct node *node = device->node;
    struct wire_message message = {.kind = WIRE_STREAM_NEW, .device = device->index};
    const struct parts parts = {.first = params, .first_size = params ? strlen(params) + 1 : 0};
    if (!node_usable(node)) return GGML_HOST_DEVICE_LOST;
    struct remote_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a stream");
    stream->device = device;
    stream->queue = message.queue = take_queue(node);
    int32_t status;
    if (stream->queue != 0)
        status = client_call(node, &message, &parts, NULL);
    else
        status = ggml_sdk_fail(GGML_HOST_BUSY, "MPI%d has no room for more streams", node->peer);
    if (status != GGML_HOST_OK) {
        if (stream->queue != 0) give_queue(node, stream->queue);
        free(stream);
        return status;
    }
    stream->backend =
        (struct ggml_backend){.table = &stream_table, .device = &device->base, .context = stream};
    *out_stream = &stream->backend;
    return GGML_HOST_OK;
}
