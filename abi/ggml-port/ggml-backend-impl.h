// SPDX-License-Identifier: MIT
// ggml-port/ggml-backend-impl.h: compiles a backend that was written in C++ for ggml's own
// interface as a plugin of this host, with its sources as they are. Its folder comes before the
// other headers in the search path; nothing more is linked than for any plugin (libggml-sdk).
//
// GGML_PORT_API_VERSION says which of ggml's interfaces the sources are written for:
//   0  late 2023: streams that allocate, no devices; in C too (ggml-backend-2023.h)
//   1  late 2024: registrations and devices, no version in them
//   2  GGML_BACKEND_API_VERSION 2, of ggml 0.21 (default)
//   3  GGML_BACKEND_API_VERSION 3, of ggml 0.27
//
// How it works: each of ggml's objects is one of the contract, with ggml's members after it and a
// table of its own that calls them. An entry that ggml's interface gives no status succeeds:
// sources for ggml abort, or say nothing. Not carried over: graph_plan_update, alloc_buffer_n,
// get_alloc_size_n, and graph_optimize of version 3.
#ifndef GGML_PORT_BACKEND_IMPL_H
#define GGML_PORT_BACKEND_IMPL_H

#if defined(GGML_PORT_API_VERSION) && GGML_PORT_API_VERSION == 0
#include "ggml-backend-2023.h"
#else

#ifndef __cplusplus
#error                                                                                             \
    "ggml-port is for backends in C++: ggml's own are; in C, fill the tables of ggml-backend-impl.h"
#endif

#include <string.h>

#include <new>

#include "../ggml-graph.h"
#include "../ggml-impl.h"
#include "ggml-backend.h"

#ifndef GGML_PORT_API_VERSION
#define GGML_PORT_API_VERSION 2
#endif
#if GGML_PORT_API_VERSION >= 2
#define GGML_BACKEND_API_VERSION GGML_PORT_API_VERSION
#endif

// --- ggml's tables -------------------------------------------------------------------------------

// In the place of an entry that is not carried over: takes any function, and NULL.
struct ggml_port_ignored {
    ggml_port_ignored() = default;
    template <class T> ggml_port_ignored(T) {
    }
};

#if GGML_PORT_API_VERSION >= 2

// What init_tensor returned at the time.
typedef enum ggml_status ggml_port_init_status;
#else
typedef void ggml_port_init_status;
#endif

// Entries of a buffer type. get_max_size, get_alloc_size and is_host may be NULL.
struct ggml_backend_buffer_type_i {
    const char *(*get_name)(ggml_backend_buffer_type_t buft); // Constant.
    // NULL on failure; the host then says OUT_OF_MEMORY.
    ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_buffer_type_t buft, size_t size);
#if GGML_PORT_API_VERSION >= 3
    ggml_port_ignored alloc_buffer_n; // Not carried over: one buffer is made for several tensors.
#endif
    size_t (*get_alignment)(ggml_backend_buffer_type_t buft); // Bytes, a power of two.
    size_t (*get_max_size)(ggml_backend_buffer_type_t buft);  // Bytes; NULL: SIZE_MAX.
    // Bytes, at least ggml_nbytes(), which is what NULL means.
    size_t (*get_alloc_size)(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);
#if GGML_PORT_API_VERSION >= 3
    ggml_port_ignored get_alloc_size_n;               // Not carried over.
#endif
    bool (*is_host)(ggml_backend_buffer_type_t buft); // NULL: false.
};

// Entries of a buffer. Only get_base, set_tensor, get_tensor and clear must be there.
struct ggml_backend_buffer_i {
    // Frees what context holds; the object itself is deleted here.
    void (*free_buffer)(ggml_backend_buffer_t buffer);
    void *(*get_base)(ggml_backend_buffer_t buffer); // Address, perhaps opaque.
    // NULL: nothing to prepare.
    ggml_port_init_status (*init_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);
    // NULL: the host sets pieces.
    void (*memset_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value,
                          size_t offset, size_t size);
    // From host memory; blocks.
    void (*set_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size);
    // To host memory; blocks.
    void (*get_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size);
#if GGML_PORT_API_VERSION >= 2
    // NULL: piece by piece, as get_tensor_2d.
    void (*set_tensor_2d)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size, size_t n_copies,
                          size_t stride_tensor, size_t stride_data);
    void (*get_tensor_2d)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size, size_t n_copies,
                          size_t stride_tensor, size_t stride_data);
#endif
    // false, or NULL: the host copies through its own memory.
    bool (*cpy_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                       struct ggml_tensor *dst);
    void (*clear)(ggml_backend_buffer_t buffer, uint8_t value); // Sets every byte.
    void (*reset)(ggml_backend_buffer_t buffer);                // NULL: nothing to drop.
};

// Entries of a stream. Only get_name, free and graph_compute must be there.
struct ggml_backend_i {
    const char *(*get_name)(ggml_backend_t backend); // Constant.
    void (*free)(ggml_backend_t backend);            // Frees the object too.
    // NULL: synchronised, then set at once.
    void (*set_tensor_async)(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                             size_t offset, size_t size);
    // Likewise.
    void (*get_tensor_async)(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                             size_t offset, size_t size);
#if GGML_PORT_API_VERSION >= 2
    // NULL: piece by piece, as get_tensor_2d_async.
    void (*set_tensor_2d_async)(ggml_backend_t backend, struct ggml_tensor *tensor,
                                const void *data, size_t offset, size_t size, size_t n_copies,
                                size_t stride_tensor, size_t stride_data);
    void (*get_tensor_2d_async)(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                void *data, size_t offset, size_t size, size_t n_copies,
                                size_t stride_tensor, size_t stride_data);
#endif
    // false, or NULL: both streams are synchronised, and the host copies.
    bool (*cpy_tensor_async)(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                             const struct ggml_tensor *src, struct ggml_tensor *dst);
    void (*synchronize)(ggml_backend_t backend); // NULL: nothing queues.
    // All three of create, free and compute, or none.
    ggml_backend_graph_plan_t (*graph_plan_create)(ggml_backend_t backend,
                                                   const struct ggml_cgraph *cgraph);
    void (*graph_plan_free)(ggml_backend_t backend, ggml_backend_graph_plan_t plan); // Ends a plan.
    // Never called.
    void (*graph_plan_update)(ggml_backend_t backend, ggml_backend_graph_plan_t plan,
                              const struct ggml_cgraph *cgraph);
    // Its status is passed on.
    enum ggml_status (*graph_plan_compute)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
    // Its status is passed on; may queue.
    enum ggml_status (*graph_compute)(ggml_backend_t backend, struct ggml_cgraph *cgraph);
    void (*event_record)(ggml_backend_t backend, ggml_backend_event_t event); // NULL: no events.
    void (*event_wait)(ggml_backend_t backend, ggml_backend_event_t event); // NULL: the host waits.
#if GGML_PORT_API_VERSION == 2
    // May change the order of nodes; NULL: it stays.
    void (*graph_optimize)(ggml_backend_t backend, struct ggml_cgraph *cgraph);
#elif GGML_PORT_API_VERSION >= 3
    ggml_port_ignored graph_optimize;
#endif
};

// Entries of a device. get_host_buffer_type, buffer_from_host_ptr, offload_op and those of events
// may be NULL.
struct ggml_backend_device_i {
    const char *(*get_name)(ggml_backend_dev_t dev);        // Constant, unique in the plugin.
    const char *(*get_description)(ggml_backend_dev_t dev); // For people.
    // Bytes; 0 and 0: not reported.
    void (*get_memory)(ggml_backend_dev_t dev, size_t *free, size_t *total);
    enum ggml_backend_dev_type (*get_type)(ggml_backend_dev_t dev); // Kind of device.
    // Fills all fields; they are zero before.
    void (*get_props)(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props);
    // A stream, NULL on failure.
    ggml_backend_t (*init_backend)(ggml_backend_dev_t dev, const char *params);
    ggml_backend_buffer_type_t (*get_buffer_type)(ggml_backend_dev_t dev); // Of its own memory.
    // Pinned host memory; NULL: none.
    ggml_backend_buffer_type_t (*get_host_buffer_type)(ggml_backend_dev_t dev);
    // NULL on failure.
    ggml_backend_buffer_t (*buffer_from_host_ptr)(ggml_backend_dev_t dev, void *ptr, size_t size,
                                                  size_t max_tensor_size);
    // Asked before graph_compute sees a node.
    bool (*supports_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
    // Whether it can use that memory.
    bool (*supports_buft)(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft);
    bool (*offload_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op); // NULL: false.
    ggml_backend_event_t (*event_new)(ggml_backend_dev_t dev);                // NULL on failure.
    void (*event_free)(ggml_backend_dev_t dev, ggml_backend_event_t event);   // Ends an event.
    // Blocks until what was recorded is done.
    void (*event_synchronize)(ggml_backend_dev_t dev, ggml_backend_event_t event);
};

// Entries of a backend.
struct ggml_backend_reg_i {
    const char *(*get_name)(ggml_backend_reg_t reg);    // Constant.
    size_t (*get_device_count)(ggml_backend_reg_t reg); // Constant.
    // index below that; static.
    ggml_backend_dev_t (*get_device)(ggml_backend_reg_t reg, size_t index);
    void *(*get_proc_address)(ggml_backend_reg_t reg, const char *name); // NULL: no functions.
};

// --- ggml's graph --------------------------------------------------------------------------------

// A graph as ggml's entries take it, with memory that is used again for the next one.
class ggml_port_graph {
  public:
    ggml_port_graph() : theirs(), memory(nullptr), bytes(0) {
    }
    ~ggml_port_graph() {
        ggml_aligned_free(memory, bytes);
    }
    ggml_port_graph(const ggml_port_graph &) = delete;
    ggml_port_graph &operator=(const ggml_port_graph &) = delete;

    // Their graph, with nodes that are those of `from` or, if it is to stay, a list of its own.
    // NULL when memory runs out.
    struct ggml_cgraph *make(const struct ggml_graph *from, bool stays) {
        const size_t n = (size_t)from->n_nodes;
        if (memory && from->uid != 0 && from->uid == theirs.uid &&
            from->n_nodes == theirs.n_nodes) {
            theirs.nodes = from->nodes;
            return &theirs;
        }
        if (!reserve(n)) return nullptr;
        theirs.n_nodes = from->n_nodes;
        theirs.uid = from->uid;
        theirs.nodes = from->nodes;
        if (stays && n > 0) {
            memcpy(list(), from->nodes, n * sizeof(from->nodes[0]));
            theirs.nodes = list();
        }
        struct ggml_hash_set *set = &theirs.visited_hash_set;
        memset(set->used, 0, ggml_bitset_size(set->size) * sizeof(set->used[0]));
        for (size_t i = 0; i < n; ++i)
            theirs.use_counts[ggml_hash_find_or_insert(set, from->nodes[i])] = from->use_counts[i];
        return &theirs;
    }

  private:
    struct ggml_cgraph theirs;
    void *memory; // the keys of the set, the list of nodes, the counts, the bits of the set
    size_t bytes;

    struct ggml_tensor **list() {
        return theirs.visited_hash_set.keys + theirs.visited_hash_set.size;
    }

    bool reserve(size_t n) {
        const size_t slots = ggml_hash_size(2 * n + 1);
        const size_t needed = (slots + n) * sizeof(struct ggml_tensor *) + slots * sizeof(int32_t) +
                              ggml_bitset_size(slots) * sizeof(ggml_bitset_t);
        if (needed > bytes) {
            ggml_aligned_free(memory, bytes);
            memory = ggml_aligned_malloc(needed);
            bytes = memory ? needed : 0;
        }
        if (!memory) return false;
        theirs = ggml_cgraph();
        theirs.visited_hash_set.size = slots;
        theirs.visited_hash_set.keys = static_cast<struct ggml_tensor **>(memory);
        theirs.use_counts = reinterpret_cast<int32_t *>(list() + n);
        theirs.visited_hash_set.used = reinterpret_cast<ggml_bitset_t *>(theirs.use_counts + slots);
        return true;
    }
};

// --- ggml's members of the objects ---------------------------------------------------------------

// Each object has a table of its own, since the entries that ggml's table leaves out are left out.
// It is made with the object; an object is not copied.
#define GGML_PORT_MEMBERS_BUFFER_TYPE                                                              \
    struct ggml_backend_buffer_type_i iface;                                                       \
    struct ggml_buffer_type_table own;                                                             \
    ggml_backend_buffer_type(struct ggml_backend_buffer_type_i iface_ = {},                        \
                             ggml_backend_dev_t device_ = nullptr, void *context_ = nullptr);
#define GGML_PORT_MEMBERS_BUFFER                                                                   \
    struct ggml_backend_buffer_i iface;                                                            \
    struct ggml_buffer_table own;                                                                  \
    ggml_backend_buffer(struct ggml_backend_buffer_i iface_, ggml_backend_buffer_type_t buft_,     \
                        void *context_, size_t size_);
#define GGML_PORT_MEMBERS_STREAM                                                                   \
    ggml_guid_t guid;                                                                              \
    struct ggml_backend_i iface;                                                                   \
    struct ggml_stream_table own;                                                                  \
    ggml_port_graph graph;                                                                         \
    ggml_backend(ggml_guid_t guid_ = nullptr, struct ggml_backend_i iface_ = {},                   \
                 ggml_backend_dev_t device_ = nullptr, void *context_ = nullptr);
#define GGML_PORT_MEMBERS_EVENT                                                                    \
    ggml_backend_event(ggml_backend_dev_t device_ = nullptr, void *context_ = nullptr);
#define GGML_PORT_MEMBERS_DEVICE                                                                   \
    struct ggml_backend_device_i iface;                                                            \
    struct ggml_device_table own;                                                                  \
    ggml_backend_device(struct ggml_backend_device_i iface_ = {},                                  \
                        ggml_backend_reg_t reg_ = nullptr, void *context_ = nullptr);
#if GGML_PORT_API_VERSION >= 2
#define GGML_PORT_MEMBERS_BACKEND                                                                  \
    int api_version;                                                                               \
    struct ggml_backend_reg_i iface;                                                               \
    struct ggml_backend_table own;                                                                 \
    ggml_backend_reg(int version = GGML_BACKEND_API_VERSION,                                       \
                     struct ggml_backend_reg_i iface_ = {}, void *context_ = nullptr);
#else
#define GGML_PORT_MEMBERS_BACKEND                                                                  \
    struct ggml_backend_reg_i iface;                                                               \
    struct ggml_backend_table own;                                                                 \
    ggml_backend_reg(struct ggml_backend_reg_i iface_ = {}, void *context_ = nullptr);
#endif

#define GGML_PORT
#include "../ggml-backend-impl.h"
#include "../ggml-plugin.h"
#include "../ggml-shape.h"

// --- entries that call ggml's --------------------------------------------------------------------

namespace ggml_port {

// Whether `entry` is there.
#define GGML_PORT_IF(entry, function) (iface.entry ? function : nullptr)

// Status of an entry that returned an object, or NULL.
inline int32_t made(const void *object) {
    return object ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

// buffer types
inline const char *buft_name(ggml_backend_buffer_type_t buft) {
    return buft->iface.get_name(buft);
}

// OUT_OF_MEMORY whatever the reason was: ggml's interface has none.
inline int32_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    *out_buffer = buft->iface.alloc_buffer(buft, size);
    return made(*out_buffer);
}
inline size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    return buft->iface.get_alignment(buft);
}
inline size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    return buft->iface.get_max_size(buft);
}
inline size_t buft_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    return buft->iface.get_alloc_size(buft, tensor);
}
inline bool buft_is_host(ggml_backend_buffer_type_t buft) {
    return buft->iface.is_host(buft);
}

// Frees what the sources keep, then the object, which was made by new.
inline void buffer_free(ggml_backend_buffer_t buffer) {
    if (buffer->iface.free_buffer) buffer->iface.free_buffer(buffer);
    delete buffer;
}
inline void *buffer_base(ggml_backend_buffer_t buffer) {
    return buffer->iface.get_base ? buffer->iface.get_base(buffer) : nullptr;
}

// From version 2 on with a status.
inline int32_t buffer_init(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
#if GGML_PORT_API_VERSION >= 2
    return ggml_entry_status(buffer->iface.init_tensor(buffer, tensor));
#else
    buffer->iface.init_tensor(buffer, tensor);
    return GGML_HOST_OK;
#endif
}
inline int32_t buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    buffer->iface.memset_tensor(buffer, tensor, value, offset, size);
    return GGML_HOST_OK;
}

// The sources abort where they fail; what returns has succeeded.
inline int32_t buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    buffer->iface.set_tensor(buffer, tensor, data, offset, size);
    return GGML_HOST_OK;
}
inline int32_t buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    buffer->iface.get_tensor(buffer, tensor, data, offset, size);
    return GGML_HOST_OK;
}
#if GGML_PORT_API_VERSION >= 2
inline int32_t buffer_set_2d(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             const void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    buffer->iface.set_tensor_2d(buffer, tensor, data, offset, size, n_copies, stride_tensor,
                                stride_data);
    return GGML_HOST_OK;
}
inline int32_t buffer_get_2d(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                             void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    buffer->iface.get_tensor_2d(buffer, tensor, data, offset, size, n_copies, stride_tensor,
                                stride_data);
    return GGML_HOST_OK;
}
#endif

// UNSUPPORTED where the sources say false: the host then copies through its own memory.
inline int32_t buffer_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    // Its own only: ggml's entries look into the object of the source.
    const struct ggml_backend_buffer *from = src->view_src ? src->view_src->buffer : src->buffer;
    if (!from || from->table->free != buffer_free) return GGML_HOST_UNSUPPORTED;
    return buffer->iface.cpy_tensor(buffer, src, dst) ? GGML_HOST_OK : GGML_HOST_UNSUPPORTED;
}
inline int32_t buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    buffer->iface.clear(buffer, value);
    return GGML_HOST_OK;
}
inline int32_t buffer_reset(ggml_backend_buffer_t buffer) {
    buffer->iface.reset(buffer);
    return GGML_HOST_OK;
}

// streams
inline const char *stream_name(ggml_backend_t stream) {
    return stream->iface.get_name(stream);
}

// The sources delete the object.
inline void stream_free(ggml_backend_t stream) {
    if (stream->iface.synchronize) stream->iface.synchronize(stream);
    stream->iface.free(stream);
}
inline int32_t stream_set(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                          size_t offset, size_t size) {
    stream->iface.set_tensor_async(stream, tensor, data, offset, size);
    return GGML_HOST_OK;
}
inline int32_t stream_get(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                          size_t offset, size_t size) {
    stream->iface.get_tensor_async(stream, tensor, data, offset, size);
    return GGML_HOST_OK;
}
#if GGML_PORT_API_VERSION >= 2
inline int32_t stream_set_2d(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                             size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                             size_t stride_data) {
    stream->iface.set_tensor_2d_async(stream, tensor, data, offset, size, n_copies, stride_tensor,
                                      stride_data);
    return GGML_HOST_OK;
}
inline int32_t stream_get_2d(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                             size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                             size_t stride_data) {
    stream->iface.get_tensor_2d_async(stream, tensor, data, offset, size, n_copies, stride_tensor,
                                      stride_data);
    return GGML_HOST_OK;
}
#endif
inline int32_t stream_copy(ggml_backend_t stream_src, ggml_backend_t stream_dst,
                           const struct ggml_tensor *src, struct ggml_tensor *dst) {
    if (stream_src->table->free != stream_free) return GGML_HOST_UNSUPPORTED;
    return stream_dst->iface.cpy_tensor_async(stream_src, stream_dst, src, dst)
               ? GGML_HOST_OK
               : GGML_HOST_UNSUPPORTED;
}
inline int32_t stream_synchronize(ggml_backend_t stream) {
    stream->iface.synchronize(stream);
    return GGML_HOST_OK;
}
// Theirs refers to the graph for as long as it lives.
struct plan {
    ggml_port_graph graph;
    ggml_backend_graph_plan_t theirs;
};
inline int32_t stream_plan_create(ggml_backend_t stream, const struct ggml_graph *graph,
                                  ggml_backend_graph_plan_t *out_plan) {
    struct plan *own = new (std::nothrow) plan();
    const struct ggml_cgraph *cgraph = own ? own->graph.make(graph, true) : nullptr;
    if (cgraph) own->theirs = stream->iface.graph_plan_create(stream, cgraph);
    if (!cgraph || !own->theirs) {
        delete own;
        own = nullptr;
    }
    *out_plan = own;
    return made(own);
}
inline void stream_plan_free(ggml_backend_t stream, ggml_backend_graph_plan_t plan_) {
    struct plan *own = static_cast<struct plan *>(plan_);
    stream->iface.graph_plan_free(stream, own->theirs);
    delete own;
}
inline int32_t stream_plan_compute(ggml_backend_t stream, ggml_backend_graph_plan_t plan_) {
    return ggml_entry_status(
        stream->iface.graph_plan_compute(stream, static_cast<struct plan *>(plan_)->theirs));
}

// The graph is made again unless it is the one before: struct ggml_port_graph.
inline int32_t stream_compute(ggml_backend_t stream, const struct ggml_graph *graph) {
    struct ggml_cgraph *cgraph = stream->graph.make(graph, false);
    if (!cgraph) return made(cgraph);
    return ggml_entry_status(stream->iface.graph_compute(stream, cgraph));
}
inline int32_t stream_record(ggml_backend_t stream, ggml_backend_event_t event) {
    stream->iface.event_record(stream, event);
    return GGML_HOST_OK;
}
inline int32_t stream_wait(ggml_backend_t stream, ggml_backend_event_t event) {
    stream->iface.event_wait(stream, event);
    return GGML_HOST_OK;
}
#if GGML_PORT_API_VERSION == 2
inline int32_t stream_optimize(ggml_backend_t stream, struct ggml_graph *graph) {
    struct ggml_cgraph *cgraph = stream->graph.make(graph, false);
    if (!cgraph) return made(cgraph);
    stream->iface.graph_optimize(stream, cgraph);
    return GGML_HOST_OK;
}
#endif

// events
inline void event_free(ggml_backend_event_t event) {
    event->device->iface.event_free(event->device, event);
}
inline int32_t event_synchronize(ggml_backend_event_t event) {
    event->device->iface.event_synchronize(event->device, event);
    return GGML_HOST_OK;
}
inline const struct ggml_event_table *event_table() {
    static const struct ggml_event_table table = {
        (uint32_t)sizeof(table), 0, event_free, event_synchronize, {}};
    return &table;
}

// devices
inline const char *device_name(ggml_backend_dev_t dev) {
    return dev->iface.get_name(dev);
}
inline const char *device_description(ggml_backend_dev_t dev) {
    return dev->iface.get_description(dev);
}
inline void device_memory(ggml_backend_dev_t dev, size_t *free, size_t *total) {
    dev->iface.get_memory(dev, free, total);
}
inline enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev) {
    return dev->iface.get_type(dev);
}

// What the sources don't set stays zero.
inline void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
    dev->iface.get_props(dev, props);
}
inline int32_t device_init(ggml_backend_dev_t dev, const char *params, ggml_backend_t *out_stream) {
    *out_stream = dev->iface.init_backend(dev, params);
    return made(*out_stream);
}
inline ggml_backend_buffer_type_t device_buft(ggml_backend_dev_t dev) {
    return dev->iface.get_buffer_type(dev);
}
inline ggml_backend_buffer_type_t device_host_buft(ggml_backend_dev_t dev) {
    return dev->iface.get_host_buffer_type(dev);
}

// Memory stays the caller's.
inline int32_t device_wrap(ggml_backend_dev_t dev, void *ptr, size_t size, size_t max_tensor_size,
                           ggml_backend_buffer_t *out_buffer) {
    *out_buffer = dev->iface.buffer_from_host_ptr(dev, ptr, size, max_tensor_size);
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_FAILED;
}
// Sources know the nodes of their own time: what the headers of this contract don't is declined.
inline bool device_supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
    return ggml_node_is_known(op) && dev->iface.supports_op(dev, op);
}
// ggml's entries look into the object of the type.
inline bool device_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    return buft->table->alloc_buffer == buft_alloc ? dev->iface.supports_buft(dev, buft)
                                                   : buft == dev->iface.get_buffer_type(dev);
}
inline bool device_offload_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
    return dev->iface.offload_op(dev, op);
}
inline int32_t device_event_new(ggml_backend_dev_t dev, ggml_backend_event_t *out_event) {
    *out_event = dev->iface.event_new(dev);
    if (*out_event && !(*out_event)->device) (*out_event)->device = dev;
    return made(*out_event);
}

// backends
inline const char *backend_name(ggml_backend_reg_t reg) {
    return reg->iface.get_name(reg);
}
inline size_t backend_count(ggml_backend_reg_t reg) {
    return reg->iface.get_device_count(reg);
}
inline ggml_backend_dev_t backend_device(ggml_backend_reg_t reg, size_t index) {
    return reg->iface.get_device(reg, index);
}
inline void *backend_proc_address(ggml_backend_reg_t reg, const char *name) {
    return reg->iface.get_proc_address(reg, name);
}

} // namespace ggml_port

// --- objects -------------------------------------------------------------------------------------

inline ggml_backend_buffer_type::ggml_backend_buffer_type(struct ggml_backend_buffer_type_i iface_,
                                                          ggml_backend_dev_t device_,
                                                          void *context_)
    : table(&own), device(device_), context(context_), reserved(), iface(iface_), own() {
    own.size = (uint32_t)sizeof(own);
    own.get_name = GGML_PORT_IF(get_name, ggml_port::buft_name);
    own.alloc_buffer = GGML_PORT_IF(alloc_buffer, ggml_port::buft_alloc);
    own.get_alignment = GGML_PORT_IF(get_alignment, ggml_port::buft_alignment);
    own.get_max_size = GGML_PORT_IF(get_max_size, ggml_port::buft_max_size);
    own.get_alloc_size = GGML_PORT_IF(get_alloc_size, ggml_port::buft_alloc_size);
    own.is_host = GGML_PORT_IF(is_host, ggml_port::buft_is_host);
}

inline ggml_backend_buffer::ggml_backend_buffer(struct ggml_backend_buffer_i iface_,
                                                ggml_backend_buffer_type_t buft_, void *context_,
                                                size_t size_)
    : table(&own), buft(buft_), context(context_), host(nullptr), size(size_),
      usage(GGML_BACKEND_BUFFER_USAGE_ANY), reserved0(0), reserved(), iface(iface_), own() {
    own.size = (uint32_t)sizeof(own);
    own.free = ggml_port::buffer_free;
    own.get_base = ggml_port::buffer_base;
    own.init_tensor = GGML_PORT_IF(init_tensor, ggml_port::buffer_init);
    own.memset_tensor = GGML_PORT_IF(memset_tensor, ggml_port::buffer_memset);
    own.set_tensor = GGML_PORT_IF(set_tensor, ggml_port::buffer_set);
    own.get_tensor = GGML_PORT_IF(get_tensor, ggml_port::buffer_get);
#if GGML_PORT_API_VERSION >= 2
    own.set_tensor_2d = GGML_PORT_IF(set_tensor_2d, ggml_port::buffer_set_2d);
    own.get_tensor_2d = GGML_PORT_IF(get_tensor_2d, ggml_port::buffer_get_2d);
#endif
    own.cpy_tensor = GGML_PORT_IF(cpy_tensor, ggml_port::buffer_copy);
    own.clear = GGML_PORT_IF(clear, ggml_port::buffer_clear);
    own.reset = GGML_PORT_IF(reset, ggml_port::buffer_reset);
}

inline ggml_backend::ggml_backend(ggml_guid_t guid_, struct ggml_backend_i iface_,
                                  ggml_backend_dev_t device_, void *context_)
    : table(&own), device(device_), context(context_), host(nullptr), reserved(), guid(guid_),
      iface(iface_), own(), graph() {
    own.size = (uint32_t)sizeof(own);
    if (guid) memcpy(own.guid, *guid, sizeof(own.guid));
    own.get_name = GGML_PORT_IF(get_name, ggml_port::stream_name);
    own.free = GGML_PORT_IF(free, ggml_port::stream_free);
    own.set_tensor_async = GGML_PORT_IF(set_tensor_async, ggml_port::stream_set);
    own.get_tensor_async = GGML_PORT_IF(get_tensor_async, ggml_port::stream_get);
#if GGML_PORT_API_VERSION >= 2
    own.set_tensor_2d_async = GGML_PORT_IF(set_tensor_2d_async, ggml_port::stream_set_2d);
    own.get_tensor_2d_async = GGML_PORT_IF(get_tensor_2d_async, ggml_port::stream_get_2d);
#endif
    own.cpy_tensor_async = GGML_PORT_IF(cpy_tensor_async, ggml_port::stream_copy);
    own.synchronize = GGML_PORT_IF(synchronize, ggml_port::stream_synchronize);
    if (iface.graph_plan_create && iface.graph_plan_free && iface.graph_plan_compute) {
        own.graph_plan_create = ggml_port::stream_plan_create;
        own.graph_plan_free = ggml_port::stream_plan_free;
        own.graph_plan_compute = ggml_port::stream_plan_compute;
    }
    own.graph_compute = GGML_PORT_IF(graph_compute, ggml_port::stream_compute);
    own.event_record = GGML_PORT_IF(event_record, ggml_port::stream_record);
    own.event_wait = GGML_PORT_IF(event_wait, ggml_port::stream_wait);
#if GGML_PORT_API_VERSION == 2
    own.graph_optimize = GGML_PORT_IF(graph_optimize, ggml_port::stream_optimize);
#endif
}

inline ggml_backend_event::ggml_backend_event(ggml_backend_dev_t device_, void *context_)
    : table(ggml_port::event_table()), device(device_), context(context_), host(nullptr),
      reserved() {
}

inline ggml_backend_device::ggml_backend_device(struct ggml_backend_device_i iface_,
                                                ggml_backend_reg_t reg_, void *context_)
    : table(&own), reg(reg_), context(context_), reserved(), iface(iface_), own() {
    own.size = (uint32_t)sizeof(own);
    own.get_name = GGML_PORT_IF(get_name, ggml_port::device_name);
    own.get_description = GGML_PORT_IF(get_description, ggml_port::device_description);
    own.get_memory = GGML_PORT_IF(get_memory, ggml_port::device_memory);
    own.get_type = GGML_PORT_IF(get_type, ggml_port::device_type);
    own.get_props = GGML_PORT_IF(get_props, ggml_port::device_props);
    own.init_backend = GGML_PORT_IF(init_backend, ggml_port::device_init);
    own.get_buffer_type = GGML_PORT_IF(get_buffer_type, ggml_port::device_buft);
    own.get_host_buffer_type = GGML_PORT_IF(get_host_buffer_type, ggml_port::device_host_buft);
    own.buffer_from_host_ptr = GGML_PORT_IF(buffer_from_host_ptr, ggml_port::device_wrap);
    own.supports_op = GGML_PORT_IF(supports_op, ggml_port::device_supports_op);
    own.supports_buft = GGML_PORT_IF(supports_buft, ggml_port::device_supports_buft);
    own.offload_op = GGML_PORT_IF(offload_op, ggml_port::device_offload_op);
    if (iface.event_new && iface.event_free && iface.event_synchronize)
        own.event_new = ggml_port::device_event_new;
}

#if GGML_PORT_API_VERSION >= 2
inline ggml_backend_reg::ggml_backend_reg(int version, struct ggml_backend_reg_i iface_,
                                          void *context_)
    : table(&own), context(context_), reserved(), api_version(version), iface(iface_), own() {
#else
inline ggml_backend_reg::ggml_backend_reg(struct ggml_backend_reg_i iface_, void *context_)
    : table(&own), context(context_), reserved(), iface(iface_), own() {
#endif
    own.size = (uint32_t)sizeof(own);
    own.get_name = GGML_PORT_IF(get_name, ggml_port::backend_name);
    own.get_device_count = GGML_PORT_IF(get_device_count, ggml_port::backend_count);
    own.get_device = GGML_PORT_IF(get_device, ggml_port::backend_device);
    own.get_proc_address = GGML_PORT_IF(get_proc_address, ggml_port::backend_proc_address);
}

// As ggml's: NULL when memory runs out, which ggml's sources don't expect. [any-thread]
inline ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t buft,
                                                      struct ggml_backend_buffer_i iface,
                                                      void *context, size_t size) {
    return new (std::nothrow) ggml_backend_buffer(iface, buft, context, size);
}

#undef GGML_PORT_IF

#endif // GGML_PORT_API_VERSION

#endif
