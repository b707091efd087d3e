// SPDX-License-Identifier: MIT
// Streams of ggml's binaries, and their events.
#include "foreign.h"

enum { KEPT_GRAPHS = 16 }; // a scheduler gives each of its parts to the stream in turn

struct foreign_stream {
    struct ggml_backend backend;
    struct foreign_device *device;
    struct foreign_binary *binary;
    void *theirs;
    struct foreign_graph *graphs[KEPT_GRAPHS];
    unsigned next; // which of them goes first
};

static const char *stream_name(ggml_backend_t backend) {
    const struct foreign_stream *stream = backend->context;
    return stream->device->name;
}

static void stream_synchronize(ggml_backend_t backend) {
    const struct foreign_stream *stream = backend->context;
    typedef void (*entry_t)(void *);
    const entry_t entry =
        FOREIGN_ENTRY(stream->binary, stream->theirs, stream_synchronize, entry_t);
    if (entry) entry(stream->theirs);
}

static void stream_free(ggml_backend_t backend) {
    struct foreign_stream *stream = backend->context;
    typedef void (*entry_t)(void *);
    stream_synchronize(backend);
    foreign_lock(stream->binary);
    FOREIGN_ENTRY(stream->binary, stream->theirs, stream_free, entry_t)(stream->theirs);
    foreign_unlock(stream->binary);
    for (int i = 0; i < KEPT_GRAPHS; ++i)
        foreign_graph_free(stream->graphs[i]);
    ggml_aligned_free(stream, sizeof(*stream));
}

// --- transfers -----------------------------------------------------------------------------------

// Their entries abort when the memory is not the device's own.
static bool is_in_own_memory(const struct foreign_stream *stream,
                             const struct ggml_tensor *tensor) {
    const struct ggml_tensor *owner = tensor->view_src ? tensor->view_src : tensor;
    const struct foreign_buffer *buffer = foreign_buffer_own(owner->buffer);
    const struct foreign_buft *buft = buffer ? foreign_buft_own(owner->buffer->buft) : NULL;
    typedef void *(*entry_t)(void *);
    return buft && buft->binary == stream->binary &&
           buft->theirs == FOREIGN_ENTRY(stream->binary, stream->device->theirs,
                                         device_get_buffer_type, entry_t)(stream->device->theirs);
}

static void stream_set_tensor_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                    const void *data, size_t offset, size_t size) {
    const struct foreign_stream *stream = backend->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, struct ggml_tensor *, const void *, size_t, size_t);
    if (is_in_own_memory(stream, tensor)) {
        FOREIGN_ENTRY(stream->binary, stream->theirs, stream_set_tensor_async, entry_t)
        (stream->theirs, foreign_shadow(stream->binary, tensor, &shadow), data, offset, size);
        return;
    }
    const struct ggml_tensor *owner = tensor->view_src ? tensor->view_src : tensor;
    stream_synchronize(backend);
    owner->buffer->iface.set_tensor(owner->buffer, tensor, data, offset, size);
}

static void stream_get_tensor_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                    void *data, size_t offset, size_t size) {
    const struct foreign_stream *stream = backend->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, const struct ggml_tensor *, void *, size_t, size_t);
    if (is_in_own_memory(stream, tensor)) {
        FOREIGN_ENTRY(stream->binary, stream->theirs, stream_get_tensor_async, entry_t)
        (stream->theirs, foreign_shadow(stream->binary, tensor, &shadow), data, offset, size);
        return;
    }
    const struct ggml_tensor *owner = tensor->view_src ? tensor->view_src : tensor;
    stream_synchronize(backend);
    owner->buffer->iface.get_tensor(owner->buffer, tensor, data, offset, size);
}

static bool stream_cpy_tensor_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                                    const struct ggml_tensor *src, struct ggml_tensor *dst) {
    struct foreign_binary *binary, *binary_dst;
    struct foreign_shadow from, to;
    typedef bool (*entry_t)(void *, void *, const struct ggml_tensor *, struct ggml_tensor *);
    void *stream_src = foreign_stream_theirs(backend_src, &binary);
    void *stream_dst = foreign_stream_theirs(backend_dst, &binary_dst);
    if (!stream_src || !stream_dst || binary != binary_dst) return false;
    if (!is_in_own_memory(backend_src->context, src)) return false;
    if (!is_in_own_memory(backend_dst->context, dst)) return false;
    return FOREIGN_ENTRY(binary, stream_dst, stream_cpy_tensor_async,
                         entry_t)(stream_src, stream_dst, foreign_shadow(binary, src, &from),
                                  foreign_shadow(binary, dst, &to));
}

// --- computing -----------------------------------------------------------------------------------

static struct foreign_graph *find_graph(ggml_backend_t backend, const struct ggml_cgraph *cgraph) {
    struct foreign_stream *stream = backend->context;
    for (int i = 0; i < KEPT_GRAPHS; ++i) {
        if (foreign_graph_is_of(stream->graphs[i], cgraph)) return stream->graphs[i];
    }
    const unsigned place = stream->next++ % KEPT_GRAPHS;
    if (stream->graphs[place]) stream_synchronize(backend); // it may still be at work
    foreign_graph_free(stream->graphs[place]);
    stream->graphs[place] = foreign_graph_new(stream->binary, cgraph);
    return stream->graphs[place];
}

static enum ggml_status stream_graph_compute(ggml_backend_t backend, struct ggml_cgraph *cgraph) {
    struct foreign_stream *stream = backend->context;
    typedef enum ggml_status (*entry_t)(void *, struct ggml_cgraph *);
    if (cgraph->n_nodes == 0) return GGML_STATUS_SUCCESS;
    struct foreign_graph *graph = find_graph(backend, cgraph);
    if (!graph) {
        foreign_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a copy of a graph of %d nodes",
                     stream->device->name, cgraph->n_nodes);
        return GGML_STATUS_ALLOC_FAILED;
    }
    const enum ggml_status status =
        FOREIGN_ENTRY(stream->binary, stream->theirs, stream_graph_compute,
                      entry_t)(stream->theirs, foreign_graph_theirs(graph));
    if (status != GGML_STATUS_SUCCESS) {
        foreign_fail(GGML_HOST_FAILED, "%s: %s could not compute a graph of %d nodes (status %d)",
                     stream->device->name, stream->binary->path, cgraph->n_nodes, (int)status);
    }
    return status;
}

// --- events --------------------------------------------------------------------------------------

static void stream_event_record(ggml_backend_t backend, ggml_backend_event_t event) {
    const struct foreign_stream *stream = backend->context;
    typedef void (*entry_t)(void *, void *);
    const struct foreign_event *own = (const struct foreign_event *)event;
    if (own->device->binary != stream->binary) {
        foreign_fail(GGML_HOST_UNSUPPORTED, "%s can't record an event of %s", stream->device->name,
                     own->device->name);
        return;
    }
    FOREIGN_ENTRY(stream->binary, stream->theirs, stream_event_record, entry_t)
    (stream->theirs, event->context);
}

static void stream_event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    const struct foreign_stream *stream = backend->context;
    const struct foreign_event *own = (const struct foreign_event *)event;
    typedef void (*entry_t)(void *, void *);
    if (own->device->binary == stream->binary) {
        FOREIGN_ENTRY(stream->binary, stream->theirs, stream_event_wait, entry_t)
        (stream->theirs, event->context);
    } else { // another binary's, which this one can't wait for
        event->device->iface.event_synchronize(event->device, event);
    }
}

// --- life ----------------------------------------------------------------------------------------

void *foreign_stream_theirs(ggml_backend_t backend, struct foreign_binary **out_binary) {
    *out_binary = NULL;
    if (!backend || backend->iface.free != stream_free) return NULL;
    const struct foreign_stream *stream = backend->context;
    *out_binary = stream->binary;
    return stream->theirs;
}

static struct ggml_backend_i interface_of(const struct foreign_binary *binary, const void *theirs) {
    struct ggml_backend_i iface = {
        .get_name = stream_name, .free = stream_free, .graph_compute = stream_graph_compute};
#define FORWARD(entry)                                                                             \
    if (foreign_entry(theirs, binary->layout->stream_##entry)) iface.entry = stream_##entry
    FORWARD(set_tensor_async);
    FORWARD(get_tensor_async);
    FORWARD(cpy_tensor_async);
    FORWARD(synchronize);
    FORWARD(event_record);
    FORWARD(event_wait);
#undef FORWARD
    return iface;
}

// ggml takes 4 threads on every machine, and they wait for each other busily.
static void set_threads(const struct foreign_stream *stream) {
    const struct ggml_host_table *host = ggml_sdk_host();
    struct ggml_host_topology machine = {.size = (uint32_t)sizeof(machine)};
    typedef void (*set_t)(void *, int);
    const set_t set = (set_t)foreign_binary_proc(stream->binary, "ggml_backend_set_n_threads");
    if (!set || !host || host->get_topology(host, &machine) != GGML_HOST_OK) return;
    set(stream->theirs, (int)MAX(machine.default_threads, 1u));
}

static ggml_guid stream_guid = {0x1e, 0x9b, 0x5f, 0x0c, 0xd1, 0x77, 0x4e, 0x02,
                                0xa3, 0x40, 0x66, 0xc9, 0x2b, 0xee, 0x85, 0x14};

ggml_backend_t foreign_stream_new(struct foreign_device *device, const char *params) {
    struct foreign_binary *binary = device->binary;
    typedef void *(*entry_t)(void *, const char *);
    struct foreign_stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!stream) {
        foreign_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a stream", device->name);
        return NULL;
    }
    memset(stream, 0, sizeof(*stream));
    foreign_lock(binary);
    stream->theirs =
        FOREIGN_ENTRY(binary, device->theirs, device_init_backend, entry_t)(device->theirs, params);
    foreign_unlock(binary);
    if (!stream->theirs) {
        foreign_fail(GGML_HOST_FAILED, "%s: %s makes no stream", device->name, binary->path);
        ggml_aligned_free(stream, sizeof(*stream));
        return NULL;
    }
    stream->device = device;
    stream->binary = binary;
    stream->backend.guid = &stream_guid;
    stream->backend.iface = interface_of(binary, stream->theirs);
    stream->backend.device = &device->device;
    stream->backend.context = stream;
    set_threads(stream);
    return &stream->backend;
}
