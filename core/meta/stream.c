// SPDX-License-Identifier: MIT
// Streams of the meta device: one stream per member, and the groups that reduce among them.
#include <stdio.h>

#include "base/mem.h"
#include "device/stream.h"
#include "meta/meta.h"

static const char *stream_name(ggml_backend_t backend) {
    return ((struct meta_stream *)backend->context)->name;
}

// Waits for all members; returns the first failure.
static int32_t meta_synchronize(ggml_backend_t backend) {
    struct meta_stream *stream = backend->context;
    enum ggml_host_status first = GGML_HOST_OK;
    for (size_t j = 0; j < stream->device->n; ++j) {
        const enum ggml_host_status status = stream_synchronize(stream->streams[j]);
        if (first == GGML_HOST_OK) first = status;
    }
    // It may have been the group that failed; the next sum makes another.
    if (first != GGML_HOST_OK) meta_group_end(stream);
    return first;
}

// Also called for a stream that was only partly made.
static void stream_end(struct meta_stream *stream) {
    if (!stream) return;
    meta_group_end(stream);
    meta_plan_free(stream->plan);
    for (size_t j = 0; j < stream->device->n; ++j) {
        ggml_backend_event_free(stream->events[j]);
        ggml_backend_free(stream->streams[j]);
    }
    ggml_mem_free(stream->name);
    ggml_mem_free(stream);
}

static void stream_free(ggml_backend_t backend) {
    meta_synchronize(backend);
    stream_end(backend->context);
}

static int32_t stream_set_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                const void *data, size_t offset, size_t size) {
    struct meta_stream *stream = backend->context;
    return meta_set(stream->streams, tensor, data, offset, size) ? GGML_HOST_OK
                                                                 : ggml_last_status();
}

static int32_t stream_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                void *data, size_t offset, size_t size) {
    struct meta_stream *stream = backend->context;
    return meta_get(stream->streams, tensor, data, offset, size) ? GGML_HOST_OK
                                                                 : ggml_last_status();
}

// A graph that is planned already costs a comparison of two numbers.
static int32_t meta_graph_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct meta_stream *stream = backend->context;
    if (!meta_plan_is_for(stream->plan, graph)) {
        // What is queued still uses the slices.
        meta_synchronize(backend);
        meta_plan_free(stream->plan);
        stream->plan = NULL;
        const enum ggml_status status = meta_plan_new(stream, graph, &stream->plan);
        if (status != GGML_STATUS_SUCCESS) return ggml_entry_status(status);
    }
    const enum ggml_status status = meta_plan_run(stream, stream->plan);
    if (status != GGML_STATUS_SUCCESS) meta_synchronize(backend);
    return ggml_entry_status(status);
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0xf1, 0x0e, 0x34, 0xcf, 0x9c, 0x6f, 0x43, 0xcb, 0x96, 0x92, 0xbe, 0x8e, 0xbb, 0x71,
             0x3f, 0xda},
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = stream_set_async,
    .get_tensor_async = stream_get_async,
    .synchronize = meta_synchronize,
    .graph_compute = meta_graph_compute,
};

static bool has_events(ggml_backend_dev_t device) {
    struct ggml_backend_dev_props props;
    ggml_backend_dev_get_props(device, &props);
    return props.caps.events;
}

// "Meta(NAME,NAME)" with the names of the members' streams.
static char *make_name(const struct meta_device *device, ggml_backend_t *streams) {
    size_t size = sizeof("Meta()");
    for (size_t j = 0; j < device->n; ++j)
        size += strlen(ggml_backend_name(streams[j])) + 1;
    char *name = ggml_mem_alloc(size);
    if (!name) return NULL;
    size_t used = (size_t)snprintf(name, size, "Meta(");
    for (size_t j = 0; j < device->n; ++j) {
        used += (size_t)snprintf(name + used, size - used, "%s%s", j > 0 ? "," : "",
                                 ggml_backend_name(streams[j]));
    }
    snprintf(name + used, size - used, ")");
    return name;
}

// Streams of all members are opened with the same parameters.
ggml_backend_t meta_stream_new(struct meta_device *device, const char *params) {
    struct meta_stream *stream = ggml_mem_calloc(1, sizeof(*stream));
    if (!stream) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for a stream");
        return NULL;
    }
    stream->device = device;
    for (size_t j = 0; j < device->n; ++j) {
        stream->streams[j] = ggml_backend_dev_init(device->devices[j], params);
        if (!stream->streams[j]) goto fail;
        if (has_events(device->devices[j])) {
            stream->events[j] = ggml_backend_event_new(device->devices[j]);
        }
    }
    stream->name = make_name(device, stream->streams);
    if (!stream->name) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for a stream's name");
        goto fail;
    }
    meta_group_begin(stream);
    stream->base =
        (struct ggml_backend){.table = &stream_table, .device = &device->base, .context = stream};
    return &stream->base;
fail:
    stream_end(stream);
    return NULL;
}
