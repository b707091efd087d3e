// SPDX-License-Identifier: MIT
// ggml-port/ggml-backend-2023.h: ggml's interface for backends of late 2023 (GGML_PORT_API_VERSION
// 0), for sources in C and C++ as they are. It knows streams, which allocate, and buffers, but
// no devices: one further source file says what device the function that makes a stream is for.
//
//   #define GGML_BACKEND_DL, GGML_PLUGIN_NAME ... on the command line
//   #include "ggml-backend.h"
//   ggml_backend_t ggml_backend_foo_init(void);
//   GGML_PORT_DEVICE("FOO", "Foo accelerator", GGML_BACKEND_DEVICE_TYPE_ACCEL,
//   ggml_backend_foo_init)
//
// How it works: such a backend has one stream in an application. One is made when it is first
// needed; every stream and buffer of the device uses it, one call at a time, and it is not freed.
// Memory counts as the device's: the host copies to and from it through that stream. Nodes that are
// not to be computed are left out of the graph, since sources of that time know no flag for it.
// Not carried over: copies between streams, graph plans, free_tensor. Needs POSIX threads.
#ifndef GGML_PORT_BACKEND_2023_H
#define GGML_PORT_BACKEND_2023_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ggml-backend.h"

// --- ggml's tables -------------------------------------------------------------------------------

// What a backend keeps in a stream, and in a buffer.
typedef void *ggml_backend_context_t;
typedef void *ggml_backend_buffer_context_t;

// Entries of a buffer, as in ggml of that time.
struct ggml_backend_buffer_i {
    void (*free_buffer)(ggml_backend_buffer_t buffer); // frees what context holds; may be NULL
    void *(*get_base)(ggml_backend_buffer_t buffer);   // address, perhaps opaque
    // NULL: ggml_nbytes()
    size_t (*get_alloc_size)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);
    void (*init_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor); // may be NULL
    void (*free_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor); // never called
};

// Entries of a stream, which also stands for the device.
struct ggml_backend_i {
    const char *(*get_name)(ggml_backend_t backend);
    void (*free)(ggml_backend_t backend);
    ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_t backend, size_t size); // NULL on failure
    size_t (*get_alignment)(ggml_backend_t backend); // bytes, a power of two
    void (*set_tensor_async)(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                             size_t offset, size_t size);
    void (*get_tensor_async)(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                             size_t offset, size_t size);
    void (*synchronize)(ggml_backend_t backend); // NULL: nothing queues
    void (*cpy_tensor_from)(ggml_backend_t backend, struct ggml_tensor *src,
                            struct ggml_tensor *dst);
    void (*cpy_tensor_to)(ggml_backend_t backend, struct ggml_tensor *src, struct ggml_tensor *dst);
    ggml_backend_graph_plan_t (*graph_plan_create)(ggml_backend_t backend,
                                                   struct ggml_cgraph *cgraph);
    void (*graph_plan_free)(ggml_backend_t backend, ggml_backend_graph_plan_t plan); // never called
    // never called
    void (*graph_plan_compute)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
    // no status: it succeeds
    void (*graph_compute)(ggml_backend_t backend, struct ggml_cgraph *cgraph);
    // of nodes that the headers know
    bool (*supports_op)(ggml_backend_t backend, const struct ggml_tensor *op);
};

// --- ggml's members of the objects ---------------------------------------------------------------

// What ggml's sources expect behind the contract's members of an object.
#define GGML_PORT_MEMBERS_BUFFER_TYPE
#define GGML_PORT_MEMBERS_BUFFER                                                                   \
    struct ggml_backend_buffer_i iface;                                                            \
    ggml_backend_t backend;
#ifdef __cplusplus
#define GGML_PORT_MEMBERS_STREAM                                                                   \
    struct ggml_backend_i iface;                                                                   \
    ggml_backend(struct ggml_backend_i iface_ = {}, void *context_ = nullptr)                      \
        : table(), device(), context(context_), host(), reserved(), iface(iface_) {                \
    }
#else
#define GGML_PORT_MEMBERS_STREAM struct ggml_backend_i iface;
#endif
#define GGML_PORT_MEMBERS_EVENT
#define GGML_PORT_MEMBERS_DEVICE
#define GGML_PORT_MEMBERS_BACKEND

#define GGML_PORT
#include "../ggml-backend-impl.h"
#include "../ggml-impl.h"
#include "../ggml-plugin.h"
#include "../ggml-shape.h"

// As ggml's: NULL when memory runs out, which ggml's sources don't expect. [any-thread]
static inline ggml_backend_buffer_t ggml_backend_buffer_init(struct ggml_backend *backend,
                                                             struct ggml_backend_buffer_i iface,
                                                             ggml_backend_buffer_context_t context,
                                                             size_t size) {
    ggml_backend_buffer_t buffer = (ggml_backend_buffer_t)calloc(1, sizeof(*buffer));
    if (!buffer) return NULL;
    buffer->context = context;
    buffer->size = size;
    buffer->iface = iface;
    buffer->backend = backend;
    return buffer;
}

// --- the device ----------------------------------------------------------------------------------

// One device: all that belongs to it, static.
struct ggml_port_device {
    struct ggml_backend_device device;     // what the host sees
    struct ggml_backend_buffer_type buft;  // its memory
    struct ggml_backend_reg reg;           // its backend
    struct ggml_stream_table stream_table; // of its streams, with the backend's name and guid
    const char *name, *description;        // as GGML_PORT_DEVICE says
    enum ggml_backend_dev_type type;       // likewise
    ggml_backend_t (*init)(void);          // makes the backend's stream, or NULL
    pthread_mutex_t lock;                  // of what follows, and of every call of the backend
    ggml_backend_t theirs;                 // the stream of the backend
    ggml_backend_buffer_t probe;           // a small buffer that is asked for sizes
};

// Their stream, with the lock held; NULL, without it, if none can be made.
static inline ggml_backend_t ggml_port_enter(struct ggml_port_device *own) {
    pthread_mutex_lock(&own->lock);
    if (!own->theirs) own->theirs = own->init();
    if (!own->theirs) pthread_mutex_unlock(&own->lock);
    return own->theirs;
}

// Lets the next call in.
static inline void ggml_port_leave(struct ggml_port_device *own) {
    pthread_mutex_unlock(&own->lock);
}

// Waits for what the backend has queued; the lock is held.
static inline void ggml_port_wait(ggml_backend_t theirs) {
    if (theirs->iface.synchronize) theirs->iface.synchronize(theirs);
}

// The device of an object.
static inline struct ggml_port_device *ggml_port_of_buft(ggml_backend_buffer_type_t buft) {
    return (struct ggml_port_device *)buft->context;
}

static inline struct ggml_port_device *ggml_port_of(ggml_backend_dev_t device) {
    return (struct ggml_port_device *)device->context;
}

// --- buffers

// Entries of buffers: each enters, calls the backend's and leaves. FAILED where no stream can be
// made.
static inline void ggml_port_buffer_free(ggml_backend_buffer_t buffer) {
    struct ggml_port_device *own = ggml_port_of_buft(buffer->buft);
    if (ggml_port_enter(own)) {
        if (buffer->iface.free_buffer) buffer->iface.free_buffer(buffer);
        ggml_port_leave(own);
    }
    free(buffer);
}

// A buffer's address never changes, so that the backend need not be entered.
static inline void *ggml_port_buffer_base(ggml_backend_buffer_t buffer) {
    return buffer->iface.get_base ? buffer->iface.get_base(buffer) : NULL;
}

// Backends of that time return nothing here: the only failure that can be seen is a missing stream.
static inline int32_t ggml_port_buffer_init_tensor(ggml_backend_buffer_t buffer,
                                                   struct ggml_tensor *tensor) {
    struct ggml_port_device *own = ggml_port_of_buft(buffer->buft);
    if (!buffer->iface.init_tensor) return GGML_HOST_OK;
    if (!ggml_port_enter(own)) return GGML_HOST_FAILED;
    buffer->iface.init_tensor(buffer, tensor);
    ggml_port_leave(own);
    return GGML_HOST_OK;
}

// Set and get at once, since a buffer of that time has no such entries: by the stream.
static inline int32_t ggml_port_buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                                           const void *data, size_t offset, size_t size) {
    struct ggml_port_device *own = ggml_port_of_buft(buffer->buft);
    ggml_backend_t theirs = ggml_port_enter(own);
    if (!theirs) return GGML_HOST_FAILED;
    theirs->iface.set_tensor_async(theirs, tensor, data, offset, size);
    ggml_port_wait(theirs);
    ggml_port_leave(own);
    return GGML_HOST_OK;
}

static inline int32_t ggml_port_buffer_get(ggml_backend_buffer_t buffer,
                                           const struct ggml_tensor *tensor, void *data,
                                           size_t offset, size_t size) {
    struct ggml_port_device *own = ggml_port_of_buft(buffer->buft);
    ggml_backend_t theirs = ggml_port_enter(own);
    if (!theirs) return GGML_HOST_FAILED;
    theirs->iface.get_tensor_async(theirs, tensor, data, offset, size);
    ggml_port_wait(theirs);
    ggml_port_leave(own);
    return GGML_HOST_OK;
}

// In pieces of a small array.
static inline int32_t ggml_port_buffer_memset(ggml_backend_buffer_t buffer,
                                              struct ggml_tensor *tensor, uint8_t value,
                                              size_t offset, size_t size) {
    uint8_t bytes[4096];
    int32_t status = GGML_HOST_OK;
    memset(bytes, value, sizeof(bytes));
    for (size_t done = 0; done < size && status == GGML_HOST_OK; done += sizeof(bytes)) {
        const size_t left = size - done;
        status = ggml_port_buffer_set(buffer, tensor, bytes, offset + done,
                                      left < sizeof(bytes) ? left : sizeof(bytes));
    }
    return status;
}

// By a tensor that covers it.
static inline int32_t ggml_port_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    struct ggml_tensor whole;
    memset(&whole, 0, sizeof(whole));
    whole.type = GGML_TYPE_I8;
    whole.buffer = buffer;
    whole.data = ggml_port_buffer_base(buffer);
    whole.ne[0] = (int64_t)buffer->size;
    whole.ne[1] = whole.ne[2] = whole.ne[3] = 1;
    whole.nb[0] = 1;
    whole.nb[1] = whole.nb[2] = whole.nb[3] = buffer->size;
    const int32_t status = ggml_port_buffer_init_tensor(buffer, &whole);
    if (status != GGML_HOST_OK) return status;
    return ggml_port_buffer_memset(buffer, &whole, value, 0, buffer->size);
}

// The table of all buffers; made when it is first needed, always the same.
static inline const struct ggml_buffer_table *ggml_port_buffer_table(void) {
    static struct ggml_buffer_table table;
    table.size = (uint32_t)sizeof(table);
    table.free = ggml_port_buffer_free;
    table.get_base = ggml_port_buffer_base;
    table.init_tensor = ggml_port_buffer_init_tensor;
    table.memset_tensor = ggml_port_buffer_memset;
    table.set_tensor = ggml_port_buffer_set;
    table.get_tensor = ggml_port_buffer_get;
    table.clear = ggml_port_buffer_clear;
    return &table;
}

// --- the kind of memory

// Valid as long as the device. [any-thread]
static inline const char *ggml_port_buft_name(ggml_backend_buffer_type_t buft) {
    return ggml_port_of_buft(buft)->name;
}

// A buffer of the backend, completed to one of the contract. OUT_OF_MEMORY where it gives none.
static inline int32_t ggml_port_buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                                           ggml_backend_buffer_t *out_buffer) {
    struct ggml_port_device *own = ggml_port_of_buft(buft);
    ggml_backend_t theirs = ggml_port_enter(own);
    *out_buffer = NULL;
    if (!theirs) return GGML_HOST_FAILED;
    ggml_backend_buffer_t buffer = theirs->iface.alloc_buffer(theirs, size);
    ggml_port_leave(own);
    if (!buffer) return GGML_HOST_OUT_OF_MEMORY;
    buffer->table = ggml_port_buffer_table();
    buffer->buft = buft;
    *out_buffer = buffer;
    return GGML_HOST_OK;
}

// 1 where no stream can be made: nothing can be allocated either.
static inline size_t ggml_port_buft_alignment(ggml_backend_buffer_type_t buft) {
    struct ggml_port_device *own = ggml_port_of_buft(buft);
    ggml_backend_t theirs = ggml_port_enter(own);
    if (!theirs) return 1;
    const size_t alignment = theirs->iface.get_alignment(theirs);
    ggml_port_leave(own);
    return alignment;
}

// A buffer tells the size, so that one is kept for it.
static inline size_t ggml_port_buft_alloc_size(ggml_backend_buffer_type_t buft,
                                               const struct ggml_tensor *tensor) {
    struct ggml_port_device *own = ggml_port_of_buft(buft);
    ggml_backend_t theirs = ggml_port_enter(own);
    size_t size = ggml_nbytes(tensor);
    if (!theirs) return size;
    if (!own->probe)
        own->probe = theirs->iface.alloc_buffer(theirs, theirs->iface.get_alignment(theirs));
    if (own->probe && own->probe->iface.get_alloc_size) {
        struct ggml_tensor copy = *tensor;
        size = own->probe->iface.get_alloc_size(own->probe, &copy);
    }
    ggml_port_leave(own);
    return size;
}

static inline const struct ggml_buffer_type_table *ggml_port_buft_table(void) {
    static struct ggml_buffer_type_table table;
    table.size = (uint32_t)sizeof(table);
    table.get_name = ggml_port_buft_name;
    table.alloc_buffer = ggml_port_buft_alloc;
    table.get_alignment = ggml_port_buft_alignment;
    table.get_alloc_size = ggml_port_buft_alloc_size;
    return &table;
}

// --- streams

// Valid as long as the device. [any-thread]
static inline const char *ggml_port_stream_name(ggml_backend_t stream) {
    return ggml_port_of(stream->device)->name;
}

// Every stream of the host's stands for the one of the backend.
static inline int32_t ggml_port_stream_synchronize(ggml_backend_t stream) {
    struct ggml_port_device *own = ggml_port_of(stream->device);
    ggml_backend_t theirs = ggml_port_enter(own);
    if (!theirs) return GGML_HOST_FAILED;
    ggml_port_wait(theirs);
    ggml_port_leave(own);
    return GGML_HOST_OK;
}

// Waits first: a stream of the host's may end while the backend, which stays, still works for it.
static inline void ggml_port_stream_free(ggml_backend_t stream) {
    ggml_port_stream_synchronize(stream);
    free(stream);
}

// Computes at once: the graph that ggml's entry is shown ends with the call. OUT_OF_MEMORY for the
// list of nodes, FAILED without a stream; the backend's own failures can't be seen.
static inline int32_t ggml_port_stream_compute(ggml_backend_t stream,
                                               const struct ggml_graph *graph) {
    struct ggml_port_device *own = ggml_port_of(stream->device);
    struct ggml_cgraph theirs_graph;
    struct ggml_tensor **nodes =
        (struct ggml_tensor **)malloc(((size_t)graph->n_nodes + 1) * sizeof(*nodes));
    ggml_backend_t theirs = nodes ? ggml_port_enter(own) : NULL;
    if (!theirs) {
        free(nodes);
        return nodes ? GGML_HOST_FAILED : GGML_HOST_OUT_OF_MEMORY;
    }
    memset(&theirs_graph, 0, sizeof(theirs_graph));
    theirs_graph.nodes = nodes;
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (graph->nodes[i]->flags & GGML_TENSOR_FLAG_COMPUTE)
            nodes[theirs_graph.n_nodes++] = graph->nodes[i];
    }
    theirs_graph.size = theirs_graph.n_nodes;
    theirs->iface.graph_compute(theirs, &theirs_graph);
    ggml_port_wait(theirs); // the list of nodes ends here
    ggml_port_leave(own);
    free(nodes);
    return GGML_HOST_OK;
}

// --- device and backend

// Entries of the device. Texts are the plugin's and valid as long as it is loaded. [any-thread]
static inline const char *ggml_port_device_name(ggml_backend_dev_t device) {
    return ggml_port_of(device)->name;
}

static inline const char *ggml_port_device_description(ggml_backend_dev_t device) {
    return ggml_port_of(device)->description;
}

// 0 of 0 bytes, which means unknown: no entry of that time tells.
static inline void ggml_port_device_memory(ggml_backend_dev_t device, size_t *out_free,
                                           size_t *out_total) {
    (void)device;
    *out_free = *out_total = 0;
}

static inline enum ggml_backend_dev_type ggml_port_device_type(ggml_backend_dev_t device) {
    return ggml_port_of(device)->type;
}

// Capabilities stay false: nothing is asynchronous, and there are no events.
static inline void ggml_port_device_props(ggml_backend_dev_t device,
                                          struct ggml_backend_dev_props *props) {
    props->name = ggml_port_of(device)->name;
    props->description = ggml_port_of(device)->description;
    props->type = ggml_port_of(device)->type;
}

// A stream of the host's, which the caller frees by its table. FAILED where the backend makes no
// stream, OUT_OF_MEMORY for the host's; parameters are ignored. [any-thread]
static inline int32_t ggml_port_device_init(ggml_backend_dev_t device, const char *params,
                                            ggml_backend_t *out_stream) {
    struct ggml_port_device *own = ggml_port_of(device);
    (void)params;
    *out_stream = NULL;
    if (!ggml_port_enter(own)) return GGML_HOST_FAILED;
    ggml_port_leave(own);
    ggml_backend_t stream = (ggml_backend_t)calloc(1, sizeof(*stream));
    if (!stream) return GGML_HOST_OUT_OF_MEMORY;
    stream->table = &own->stream_table;
    stream->device = device;
    *out_stream = stream;
    return GGML_HOST_OK;
}

static inline ggml_backend_buffer_type_t ggml_port_device_buft(ggml_backend_dev_t device) {
    return &ggml_port_of(device)->buft;
}

// Sources know the nodes of their own time: what the headers of this contract don't is declined.
static inline bool ggml_port_device_supports_op(ggml_backend_dev_t device,
                                                const struct ggml_tensor *op) {
    struct ggml_port_device *own = ggml_port_of(device);
    if (!ggml_node_is_known(op)) return false;
    if (ggml_op_is_empty(op->op)) return true;
    ggml_backend_t theirs = ggml_port_enter(own);
    if (!theirs) return false;
    const bool supported = theirs->iface.supports_op && theirs->iface.supports_op(theirs, op);
    ggml_port_leave(own);
    return supported;
}

// Its own kind alone: buffers of other plugins are copied through the host.
static inline bool ggml_port_device_supports_buft(ggml_backend_dev_t device,
                                                  ggml_backend_buffer_type_t buft) {
    return buft == &ggml_port_of(device)->buft;
}

// The table of every device that this header makes; filled in at each call with the same values.
static inline const struct ggml_device_table *ggml_port_device_table(void) {
    static struct ggml_device_table table;
    table.size = (uint32_t)sizeof(table);
    table.get_name = ggml_port_device_name;
    table.get_description = ggml_port_device_description;
    table.get_memory = ggml_port_device_memory;
    table.get_type = ggml_port_device_type;
    table.get_props = ggml_port_device_props;
    table.init_backend = ggml_port_device_init;
    table.get_buffer_type = ggml_port_device_buft;
    table.supports_op = ggml_port_device_supports_op;
    table.supports_buft = ggml_port_device_supports_buft;
    return &table;
}

// Entries of the backend, which has one device. [any-thread]
static inline const char *ggml_port_reg_name(ggml_backend_reg_t reg) {
    return ((const struct ggml_port_device *)reg->context)->name;
}

static inline size_t ggml_port_reg_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 1;
}

static inline ggml_backend_dev_t ggml_port_reg_device(ggml_backend_reg_t reg, size_t index) {
    (void)index;
    return &((struct ggml_port_device *)reg->context)->device;
}

// Fills in the rest of `own`. [init]
static inline ggml_backend_reg_t ggml_port_start(struct ggml_port_device *own) {
    static struct ggml_backend_table table;
    table.size = (uint32_t)sizeof(table);
    table.get_name = ggml_port_reg_name;
    table.get_device_count = ggml_port_reg_count;
    table.get_device = ggml_port_reg_device;
    own->stream_table.size = (uint32_t)sizeof(own->stream_table);
    snprintf((char *)own->stream_table.guid, sizeof(own->stream_table.guid), "2023 %s", own->name);
    own->stream_table.get_name = ggml_port_stream_name;
    own->stream_table.free = ggml_port_stream_free;
    own->stream_table.synchronize = ggml_port_stream_synchronize;
    own->stream_table.graph_compute = ggml_port_stream_compute;
    own->device.table = ggml_port_device_table();
    own->device.reg = &own->reg;
    own->device.context = own;
    own->buft.table = ggml_port_buft_table();
    own->buft.device = &own->device;
    own->buft.context = own;
    own->reg.table = &table;
    own->reg.context = own;
    return &own->reg;
}

// The plugin's device, once in one source file: name and description are literals, `type_` an enum
// ggml_backend_dev_type, `init_` makes a stream or returns NULL.
#define GGML_PORT_DEVICE(name_, description_, type_, init_)                                        \
    static ggml_backend_reg_t ggml_port_reg(void) {                                                \
        static struct ggml_port_device own;                                                        \
        if (own.init) return &own.reg;                                                             \
        pthread_mutex_init(&own.lock, NULL);                                                       \
        own.name = name_;                                                                          \
        own.description = description_;                                                            \
        own.type = type_;                                                                          \
        own.init = init_;                                                                          \
        return ggml_port_start(&own);                                                              \
    }                                                                                              \
    GGML_BACKEND_DL_IMPL(ggml_port_reg)

#endif
