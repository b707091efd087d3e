// SPDX-License-Identifier: MIT
// Streams of ggml's binaries, and their events. A stream belongs to one thread at a time, as in
// ggml, so that its entries are called without the binary's lock.
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

// The device's name, "foreign-" included: two streams of one device have the same.
static const char *stream_name(ggml_backend_t backend) {
    const struct foreign_stream *stream = backend->context;
    return stream->device->name;
}

// Theirs returns nothing: what failed in the queue ends the process.
static int32_t stream_synchronize(ggml_backend_t backend) {
    const struct foreign_stream *stream = backend->context;
    typedef void (*entry_t)(void *);
    const entry_t entry =
        FOREIGN_ENTRY(stream->binary, stream->theirs, stream_synchronize, entry_t);
    if (entry) entry(stream->theirs);
    return GGML_HOST_OK;
}

// Waits first: shadows of queued graphs are freed with the stream.
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

// Whether the binary's stream has the entry. Without it the host uses the synchronous transfer of
// the buffer.
static bool is_offered(const struct foreign_stream *stream, int slot) {
    return foreign_entry(stream->theirs, slot) != NULL;
}

// Asynchronous entries of ggml's backends assert that the tensor lies in the device's default
// memory, and abort otherwise. Views are judged by the tensor that owns the memory.
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

// `data` is read after the call returns, until the stream is synchronised: the contract's rule is
// ggml's.
static int32_t stream_set_tensor_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                       const void *data, size_t offset, size_t size) {
    const struct foreign_stream *stream = backend->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, struct ggml_tensor *, const void *, size_t, size_t);
    if (!is_offered(stream, stream->binary->layout->stream_set_tensor_async) ||
        !is_in_own_memory(stream, tensor))
        return GGML_HOST_UNSUPPORTED;
    FOREIGN_ENTRY(stream->binary, stream->theirs, stream_set_tensor_async, entry_t)
    (stream->theirs, foreign_shadow(stream->binary, tensor, &shadow), data, offset, size);
    return GGML_HOST_OK;
}

static int32_t stream_get_tensor_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                       void *data, size_t offset, size_t size) {
    const struct foreign_stream *stream = backend->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, const struct ggml_tensor *, void *, size_t, size_t);
    if (!is_offered(stream, stream->binary->layout->stream_get_tensor_async) ||
        !is_in_own_memory(stream, tensor))
        return GGML_HOST_UNSUPPORTED;
    FOREIGN_ENTRY(stream->binary, stream->theirs, stream_get_tensor_async, entry_t)
    (stream->theirs, foreign_shadow(stream->binary, tensor, &shadow), data, offset, size);
    return GGML_HOST_OK;
}

// Between streams of one binary only: two binaries share no objects, even with the same
// libggml-base.
static int32_t stream_cpy_tensor_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                                       const struct ggml_tensor *src, struct ggml_tensor *dst) {
    struct foreign_binary *binary, *binary_dst;
    struct foreign_shadow from, to;
    typedef bool (*entry_t)(void *, void *, const struct ggml_tensor *, struct ggml_tensor *);
    void *stream_src = foreign_stream_theirs(backend_src, &binary);
    void *stream_dst = foreign_stream_theirs(backend_dst, &binary_dst);
    if (!stream_src || !stream_dst || binary != binary_dst ||
        !is_offered(backend_dst->context, binary->layout->stream_cpy_tensor_async) ||
        !is_in_own_memory(backend_src->context, src) ||
        !is_in_own_memory(backend_dst->context, dst))
        return GGML_HOST_UNSUPPORTED;
    const bool done = FOREIGN_ENTRY(binary, stream_dst, stream_cpy_tensor_async, entry_t)(
        stream_src, stream_dst, foreign_shadow(binary, src, &from),
        foreign_shadow(binary, dst, &to));
    return done ? GGML_HOST_OK : GGML_HOST_UNSUPPORTED;
}

// --- computing -----------------------------------------------------------------------------------

// A ring of the last graphs: schedulers run the same few parts of a model in turn. The shadow that
// is replaced may still be queued, so the stream is emptied before it is freed.
static struct foreign_graph *find_graph(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct foreign_stream *stream = backend->context;
    for (int i = 0; i < KEPT_GRAPHS; ++i) {
        if (foreign_graph_is_of(stream->graphs[i], graph)) return stream->graphs[i];
    }
    const unsigned place = stream->next++ % KEPT_GRAPHS;
    if (stream->graphs[place]) stream_synchronize(backend); // it may still be at work
    foreign_graph_free(stream->graphs[place]);
    stream->graphs[place] = foreign_graph_new(stream->binary, graph);
    return stream->graphs[place];
}

// GGML_STATUS_ABORTED is what an abort callback asked for; every status of ggml's is translated by
// the host's own function.
static int32_t stream_graph_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct foreign_stream *stream = backend->context;
    typedef enum ggml_status (*entry_t)(void *, struct ggml_cgraph *);
    if (graph->n_nodes == 0) return GGML_HOST_OK;
    struct foreign_graph *shadow = find_graph(backend, graph);
    if (!shadow) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a copy of a graph of %d nodes",
                      stream->device->name, graph->n_nodes);
        return GGML_HOST_OUT_OF_MEMORY;
    }
    struct ggml_cgraph *theirs = foreign_graph_theirs(shadow);
    if (theirs->n_nodes == 0) return GGML_HOST_OK; // none was chosen
    const enum ggml_status status = FOREIGN_ENTRY(
        stream->binary, stream->theirs, stream_graph_compute, entry_t)(stream->theirs, theirs);
    if (status != GGML_STATUS_SUCCESS) {
        ggml_sdk_fail(GGML_HOST_FAILED, "%s: %s could not compute a graph of %d nodes (status %d)",
                      stream->device->name, stream->binary->path, graph->n_nodes, (int)status);
    }
    return ggml_entry_status(status);
}

// --- events --------------------------------------------------------------------------------------

// An event is an object of the binary that made it: another binary's stream can't write to it.
static int32_t stream_event_record(ggml_backend_t backend, ggml_backend_event_t event) {
    const struct foreign_stream *stream = backend->context;
    typedef void (*entry_t)(void *, void *);
    const struct foreign_event *own = (const struct foreign_event *)event;
    if (own->device->binary != stream->binary) {
        ggml_sdk_fail(GGML_HOST_UNSUPPORTED, "%s can't record an event of %s", stream->device->name,
                      own->device->name);
        return GGML_HOST_UNSUPPORTED;
    }
    FOREIGN_ENTRY(stream->binary, stream->theirs, stream_event_record, entry_t)
    (stream->theirs, event->context);
    return GGML_HOST_OK;
}

static int32_t stream_event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    const struct foreign_stream *stream = backend->context;
    const struct foreign_event *own = (const struct foreign_event *)event;
    typedef void (*entry_t)(void *, void *);
    // Another binary's is nothing that this one can wait for.
    if (own->device->binary != stream->binary ||
        !is_offered(stream, stream->binary->layout->stream_event_wait))
        return GGML_HOST_UNSUPPORTED;
    FOREIGN_ENTRY(stream->binary, stream->theirs, stream_event_wait, entry_t)
    (stream->theirs, event->context);
    return GGML_HOST_OK;
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0x1e, 0x9b, 0x5f, 0x0c, 0xd1, 0x77, 0x4e, 0x02, 0xa3, 0x40, 0x66, 0xc9, 0x2b, 0xee,
             0x85, 0x14},
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = stream_set_tensor_async,
    .get_tensor_async = stream_get_tensor_async,
    .cpy_tensor_async = stream_cpy_tensor_async,
    .synchronize = stream_synchronize,
    .graph_compute = stream_graph_compute,
    .event_record = stream_event_record,
    .event_wait = stream_event_wait,
};

// --- life ----------------------------------------------------------------------------------------

// The table's address tells this plugin's streams from others.
void *foreign_stream_theirs(ggml_backend_t backend, struct foreign_binary **out_binary) {
    *out_binary = NULL;
    if (!backend || backend->table != &stream_table) return NULL;
    const struct foreign_stream *stream = backend->context;
    *out_binary = stream->binary;
    return stream->theirs;
}

// ggml's CPU backend takes 4 threads on every machine, which spin while they wait for each other;
// on two cores that is many times slower than two threads. The host's default for this machine is
// set instead; programs can still set their own.
static void set_threads(const struct foreign_stream *stream) {
    struct ggml_host_topology machine = {.size = (uint32_t)sizeof(machine)};
    typedef void (*set_t)(void *, int);
    const set_t set = (set_t)foreign_binary_proc(stream->binary, "ggml_backend_set_n_threads");
    if (!set || !ggml_sdk_topology(&machine)) return;
    set(stream->theirs, (int)MAX(machine.default_threads, 1u));
}

// The lock is held while the binary makes its stream, as backends then initialise what all streams
// share.
ggml_backend_t foreign_stream_new(struct foreign_device *device, const char *params) {
    struct foreign_binary *binary = device->binary;
    typedef void *(*entry_t)(void *, const char *);
    struct foreign_stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!stream) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a stream", device->name);
        return NULL;
    }
    memset(stream, 0, sizeof(*stream));
    foreign_lock(binary);
    stream->theirs =
        FOREIGN_ENTRY(binary, device->theirs, device_init_backend, entry_t)(device->theirs, params);
    foreign_unlock(binary);
    if (!stream->theirs) {
        ggml_sdk_fail(GGML_HOST_FAILED, "%s: %s makes no stream", device->name, binary->path);
        ggml_aligned_free(stream, sizeof(*stream));
        return NULL;
    }
    stream->device = device;
    stream->binary = binary;
    stream->backend.table = &stream_table;
    stream->backend.device = &device->device;
    stream->backend.context = stream;
    set_threads(stream);
    return &stream->backend;
}
