// SPDX-License-Identifier: MIT
// ggml-backend-impl.h: the objects that a plugin makes, and their tables.
//
// An object begins with a pointer to the table of its kind; the rest of it that is declared here is
// what both sides see, and a plugin's own object may begin with it. A table is constant and sized.
// It and the objects end in reserved slots that a plugin leaves zero: a later 1.x contract names
// them, so no struct here ever changes size or offsets within a major version. An entry marked
// (opt) may be NULL, which means "not supported"; the host then does what the comment says.
//
// Entries are called only through the host's wrappers, which have checked every argument: no entry
// sees a NULL object, an offset out of bounds, or a size of 0 where none makes sense. Backends that
// were written in C++ for ggml's own interface compile with ggml-port/ggml-backend-impl.h, which
// adds ggml's members to the objects (GGML_PORT).
//
// Who makes and ends what:
//
//   object        made by                          ended by            how many
//   backend       the plugin, static               never               one per plugin
//   device        the plugin, static               never               as get_device_count says
//   buffer type   the plugin, static               never               a few per device
//   buffer        alloc_buffer, and by extensions  its table's free    as memory allows
//   stream        init_backend                     its table's free    any number per device
//   event         event_new                        its table's free    any number per device
//   plan          graph_plan_create                graph_plan_free     any number per stream
//
// Static objects are made before ggml_backend_init returns (devices may come later if the note says
// so) and are valid until shutdown returned. The host frees all others before it calls shutdown.
//
// Thread tags are those of ggml.h. [stream] is about the object that an entry is first given:
// different streams, buffers and events of a plugin are used by different threads at the same time.
//
// Why tables in C and not C++ classes: a table has one layout for every compiler and language, and
// its size says what is in it.
#ifndef GGML_BACKEND_IMPL_H
#define GGML_BACKEND_IMPL_H

#include "ggml-backend.h"
#include "ggml-graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- buffer type: a kind of memory of a device ---------------------------------------------------

// Example: a GPU has one for its own memory and one for pinned memory of the host.

// One table serves all buffer types of a kind; it is constant, and stays for as long as the plugin
// is loaded. What is said of statuses at struct ggml_stream_table holds for every table.
struct ggml_buffer_type_table {
    uint32_t size;      // bytes of the table that the plugin knows
    uint32_t reserved0; // 0
    // Name, constant. [any-thread]
    const char *(*get_name)(ggml_backend_buffer_type_t buft);
    // A buffer of size > 0 bytes. [any-thread]
    int32_t (*alloc_buffer)(ggml_backend_buffer_type_t buft, size_t size,
                            ggml_backend_buffer_t *out_buffer);
    // Alignment of tensors in bytes, a power of two, constant. [any-thread]
    size_t (*get_alignment)(ggml_backend_buffer_type_t buft);
    // (opt: SIZE_MAX) Largest buffer in bytes. [any-thread]
    size_t (*get_max_size)(ggml_backend_buffer_type_t buft);
    // (opt: ggml_nbytes) Bytes that the tensor occupies, >= ggml_nbytes(tensor). [any-thread]
    size_t (*get_alloc_size)(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);
    // (opt: false) Whether tensor->data is an address of the host with the standard layout.
    // [any-thread]
    bool (*is_host)(ggml_backend_buffer_type_t buft);
    // (opt: 1) Bytes whose multiples the offsets and sizes of transfers from and to the tensor are;
    // SIZE_MAX: only the whole tensor at once, as where rows are interleaved. The host refuses
    // others. [any-thread]
    size_t (*get_access_unit)(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);
    void (*reserved[8])(void); // NULL
};

// Of a device, and as that one the same for every host: never written after it was made.
struct ggml_backend_buffer_type {
    const struct ggml_buffer_type_table *table; // of its kind
    ggml_backend_dev_t device; // a device of the plugin; NULL only in the host's own plain memory
    void *context;             // the plugin's own
    void *reserved[5];         // NULL
#ifdef GGML_PORT
    GGML_PORT_MEMBERS_BUFFER_TYPE
#endif
};

// --- buffer --------------------------------------------------------------------------------------

// A piece of memory. Tensors are placed in it by the host, at addresses from get_base on; the
// plugin learns of each by init_tensor. Contents are the program's; a plugin reads and writes them
// by its entries and by computing only.

// What a buffer does. Every entry that transfers blocks until it is done, and is not ordered
// against queued work: the host, or the program, synchronises. `tensor` is one that was placed in
// this buffer.
struct ggml_buffer_table {
    uint32_t size;      // bytes of the table that the plugin knows
    uint32_t reserved0; // 0
    // Frees the memory and everything else including the ggml_backend_buffer itself. [stream]
    void (*free)(ggml_backend_buffer_t buffer);
    // Base address, not NULL for a non-empty buffer; may be an opaque device address. [any-thread]
    void *(*get_base)(ggml_backend_buffer_t buffer);
    // (opt: success) Called once per tensor placed in the buffer, views included. [stream]
    int32_t (*init_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);
    // (opt: set_tensor in pieces) Sets size bytes at offset. Blocks. [stream]
    int32_t (*memset_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size);
    // Copies size bytes from the host to tensor->data + offset. Blocks. [stream]
    int32_t (*set_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size);
    // Copies size bytes from tensor->data + offset to the host. Blocks. [stream]
    int32_t (*get_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size);
    // (opt: the entries above, piece by piece) n_copies pieces of size bytes with a stride in bytes
    // on either side. Blocks. [stream]
    int32_t (*set_tensor_2d)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             const void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data);
    int32_t (*get_tensor_2d)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                             void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data);
    // (opt: through the host's memory) Copies src into dst, which lies in this buffer. Blocks.
    // [stream]
    int32_t (*cpy_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                          struct ggml_tensor *dst);
    // Sets every byte of the buffer. Blocks. [stream]
    int32_t (*clear)(ggml_backend_buffer_t buffer, uint8_t value);
    // (opt) Drops what init_tensor attached. [stream]
    int32_t (*reset)(ggml_backend_buffer_t buffer);
    // (opt) What the application has said that the buffer is for, in buffer->usage as well.
    // WEIGHTS: what was set is final until it is set again, so that it may be packed, compiled or
    // moved. A usage that the plugin doesn't know is ANY. May block. [stream]
    int32_t (*set_usage)(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage);
    void (*reserved[8])(void); // NULL
};

// A buffer belongs to the host that had it made. A plugin's own object may begin with it.
struct ggml_backend_buffer {
    const struct ggml_buffer_table *table; // of its kind
    ggml_backend_buffer_type_t buft;       // kind of memory
    void *context;                         // the plugin's own
    void *host;                            // the host's own; NULL when the plugin makes the object
    size_t size;                           // bytes, at least those asked for
    uint32_t usage;     // enum ggml_backend_buffer_usage; ANY when the plugin makes the object
    uint32_t reserved0; // 0
    void *reserved[2];  // NULL
#ifdef GGML_PORT
    GGML_PORT_MEMBERS_BUFFER
#endif
};

// Makes the object for a new buffer; the table's `free` ends it by ggml_sdk_buffer_free(). NULL
// after set_error when memory runs out: the caller then frees its context itself. [any-thread]
GGML_API ggml_backend_buffer_t ggml_sdk_buffer_new(ggml_backend_buffer_type_t buft,
                                                   const struct ggml_buffer_table *table,
                                                   void *context, size_t size);
// Frees the object alone. NULL does nothing. [any-thread]
GGML_API void ggml_sdk_buffer_free(ggml_backend_buffer_t buffer);

// Copies src into dst directly between their buffers; false: it needs staging. Blocks. [stream]
GGML_API bool ggml_backend_buffer_copy_tensor(const struct ggml_tensor *src,
                                              struct ggml_tensor *dst);

// One buffer that stands for several, which it then owns: only free and clear work on it. Its type
// is that of the first. NULL on failure, the members then stay the caller's. [stream]
GGML_API ggml_backend_buffer_t
ggml_backend_multi_buffer_alloc_buffer(ggml_backend_buffer_t *buffers, size_t n_buffers);

// Whether it is one; false for NULL with a message. [any-thread]
GGML_API bool ggml_backend_buffer_is_multi_buffer(ggml_backend_buffer_t buffer);

// Sets the usage of the members of one; another leaves a message. [stream]
GGML_API void ggml_backend_multi_buffer_set_usage(ggml_backend_buffer_t buffer,
                                                  enum ggml_backend_buffer_usage usage);

// --- stream --------------------------------------------------------------------------------------

// A queue of work in order. The simplest stream computes in graph_compute and queues nothing: all
// other entries but get_name and free may then be NULL.
//
//   queued by        set_tensor_async, get_tensor_async, cpy_tensor_async, graph_compute,
//                    graph_plan_compute, event_record, event_wait
//   waits for all    synchronize, free

// What a stream does. One table serves all streams of a kind; it is constant, and stays for as long
// as the plugin is loaded. Entries that return int32_t return an enum ggml_host_status and, when
// that isn't GGML_HOST_OK, have called set_error with the reason. An entry marked (opt) may also
// return GGML_HOST_UNSUPPORTED without a reason, having done nothing: the host then does as if it
// were NULL.
//
// Why statuses of late failures are told by synchronize: work that is queued fails when no caller
// is asking.
struct ggml_stream_table {
    uint32_t size;      // bytes of the table that the plugin knows
    uint32_t reserved0; // 0
    uint8_t guid[16];   // of this kind of stream: random bytes, or a name
    // Name, constant. [any-thread]
    const char *(*get_name)(ggml_backend_t stream);
    // Waits for queued work, then frees everything including the ggml_backend itself. [stream]
    void (*free)(ggml_backend_t stream);
    // (opt: synchronize, then the buffer's entry) Queue a transfer of size bytes at offset; the
    // host memory stays valid until synchronize. [stream]
    int32_t (*set_tensor_async)(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                                size_t offset, size_t size);
    int32_t (*get_tensor_async)(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                                size_t offset, size_t size);
    // (opt: the entries above, piece by piece) n_copies pieces with a stride in bytes on either
    // side. [stream]
    int32_t (*set_tensor_2d_async)(ggml_backend_t stream, struct ggml_tensor *tensor,
                                   const void *data, size_t offset, size_t size, size_t n_copies,
                                   size_t stride_tensor, size_t stride_data);
    int32_t (*get_tensor_2d_async)(ggml_backend_t stream, const struct ggml_tensor *tensor,
                                   void *data, size_t offset, size_t size, size_t n_copies,
                                   size_t stride_tensor, size_t stride_data);
    // (opt: the host synchronises both and copies itself) Queue a copy after src's queued work;
    // later work of dst waits for it. Called through dst's table. [stream]
    int32_t (*cpy_tensor_async)(ggml_backend_t stream_src, ggml_backend_t stream_dst,
                                const struct ggml_tensor *src, struct ggml_tensor *dst);
    // (opt: nothing queues) Waits for all queued work. Returns the first failure of work that was
    // queued since it last returned one, whichever thread it happened on, and then forgets it.
    // [stream]
    int32_t (*synchronize)(ggml_backend_t stream);
    // (opt: unsupported) Plans: a graph prepared once, computed often. All three or none. [stream]
    int32_t (*graph_plan_create)(ggml_backend_t stream, const struct ggml_graph *graph,
                                 ggml_backend_graph_plan_t *out_plan);
    void (*graph_plan_free)(ggml_backend_t stream, ggml_backend_graph_plan_t plan);
    int32_t (*graph_plan_compute)(ggml_backend_t stream, ggml_backend_graph_plan_t plan);
    // Computes nodes[0..n_nodes) in order, skipping empty ones and those without
    // GGML_TENSOR_FLAG_COMPUTE; may return before completion. The application is told
    // GGML_STATUS_ALLOC_FAILED for OUT_OF_MEMORY, GGML_STATUS_ABORTED for ABORTED, and
    // GGML_STATUS_FAILED for everything else. [stream]
    int32_t (*graph_compute)(ggml_backend_t stream, const struct ggml_graph *graph);
    // (opt: unsupported) Marks what is queued now. [stream]
    int32_t (*event_record)(ggml_backend_t stream, ggml_backend_event_t event);
    // (opt: the host waits instead) Makes later work of this stream wait; does not block the host.
    // [stream]
    int32_t (*event_wait)(ggml_backend_t stream, ggml_backend_event_t event);
    // (opt) May reorder the nodes of the graph, in graph->nodes, for fusion and overlap; the rest
    // of it stays as it is. [stream]
    int32_t (*graph_optimize)(ggml_backend_t stream, struct ggml_graph *graph);
    void (*reserved[8])(void); // NULL
};

// A stream belongs to the host that had it made. A plugin's own object may begin with it.
struct ggml_backend {
    const struct ggml_stream_table *table; // of its kind
    ggml_backend_dev_t device;             // that it was opened on
    void *context;                         // the plugin's own
    void *host;                            // the host's own; NULL when the plugin makes the object
    void *reserved[4];                     // NULL
#ifdef GGML_PORT
    GGML_PORT_MEMBERS_STREAM
#endif
};

// What an event does beyond what streams do with it.
struct ggml_event_table {
    uint32_t size;      // bytes of the table that the plugin knows
    uint32_t reserved0; // 0
    // Frees the event; what waits for it still ends. [stream]
    void (*free)(ggml_backend_event_t event);
    // Waits for what was marked last; never recorded: does not block. Returns a failure of that
    // work that no other entry has returned, as far as it is known. [stream]
    int32_t (*synchronize)(ggml_backend_event_t event);
    void (*reserved[4])(void); // NULL
};

// An event belongs to the host that had it made. A plugin's own object may begin with it.
struct ggml_backend_event {
    const struct ggml_event_table *table; // of its kind
    ggml_backend_dev_t device;            // of the streams that record it
    void *context;                        // the plugin's own
    void *host;                           // the host's own; NULL when the plugin makes the object
    void *reserved[4];                    // NULL
#ifdef GGML_PORT
    GGML_PORT_MEMBERS_EVENT
#endif
};

// --- device --------------------------------------------------------------------------------------

// Devices are told apart and chosen by programs before anything is computed, so asking is cheap;
// opening a stream may be expensive.

// One table serves all devices of a kind. Enumeration entries (down to get_props) must not create a
// compute context: a program that lists GPUs takes none of their memory.
struct ggml_device_table {
    uint32_t size;      // bytes of the table that the plugin knows
    uint32_t reserved0; // 0
    // Short name, unique in the plugin ("CUDA0"). [any-thread]
    const char *(*get_name)(ggml_backend_dev_t dev);
    // What a person calls it. [any-thread]
    const char *(*get_description)(ggml_backend_dev_t dev);
    // Bytes; free <= total; 0 and 0: nothing to report. [any-thread]
    void (*get_memory)(ggml_backend_dev_t dev, size_t *free, size_t *total);
    enum ggml_backend_dev_type (*get_type)(ggml_backend_dev_t dev);
    // Fills every field; props is zeroed before. [any-thread]
    void (*get_props)(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props);
    // A new stream; params is NULL or the plugin's own syntax. [any-thread]
    int32_t (*init_backend)(ggml_backend_dev_t dev, const char *params, ggml_backend_t *out_stream);
    // The preferred buffer type, constant. [any-thread]
    ggml_backend_buffer_type_t (*get_buffer_type)(ggml_backend_dev_t dev);
    // (opt: NULL) Pinned host memory for fast transfers. [any-thread]
    ggml_backend_buffer_type_t (*get_host_buffer_type)(ggml_backend_dev_t dev);
    // (opt: unsupported) Wraps host memory that stays the caller's. [any-thread]
    int32_t (*buffer_from_host_ptr)(ggml_backend_dev_t dev, void *ptr, size_t size,
                                    size_t max_tensor_size, ggml_backend_buffer_t *out_buffer);
    // Whether the device computes this node; callable without any buffers. [any-thread]
    bool (*supports_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
    // Whether it can use tensors in this kind of memory. [any-thread]
    bool (*supports_buft)(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft);
    // (opt: false) Whether copying the operands over pays. [any-thread]
    bool (*offload_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
    // (opt: no events) A new event. It can be recorded again and again; waiting for one that was
    // never recorded does not block. [any-thread]
    int32_t (*event_new)(ggml_backend_dev_t dev, ggml_backend_event_t *out_event);
    void (*reserved[8])(void); // NULL
};

// The same for every host: never written after it was made.
struct ggml_backend_device {
    const struct ggml_device_table *table; // of its kind
    ggml_backend_reg_t reg;                // the backend that it belongs to
    void *context;                         // the plugin's own
    void *reserved[5];                     // NULL
#ifdef GGML_PORT
    GGML_PORT_MEMBERS_DEVICE
#endif
};

// --- backend: what a plugin's devices belong to --------------------------------------------------

// The object that the plugin table hands over. Its name is what programs look for ("CUDA"), and
// what GGML_DEVICES filters by.

// What a backend does: names itself and its devices.
struct ggml_backend_table {
    uint32_t size;      // bytes of the table that the plugin knows
    uint32_t reserved0; // 0
    // Name, constant, unique among plugins. [any-thread]
    const char *(*get_name)(ggml_backend_reg_t reg);
    // Constant after ggml_backend_init, unless the note says that devices come later. [any-thread]
    size_t (*get_device_count)(ggml_backend_reg_t reg);
    // Constant objects, index < get_device_count. [any-thread]
    ggml_backend_dev_t (*get_device)(ggml_backend_reg_t reg, size_t index);
    // (opt: NULL) Named functions; see ggml_backend_reg_get_proc_address(). [any-thread]
    void *(*get_proc_address)(ggml_backend_reg_t reg, const char *name);
    void (*reserved[8])(void); // NULL
};

// The same for every host: never written after it was made.
struct ggml_backend_reg {
    const struct ggml_backend_table *table; // its only one
    void *context;                          // the plugin's own
    void *reserved[6];                      // NULL
#ifdef GGML_PORT
    GGML_PORT_MEMBERS_BACKEND
#endif
};

// Registers a backend that is linked into the application. NULL and repetitions are ignored.
// [any-thread]
GGML_API void ggml_backend_register(ggml_backend_reg_t reg);
GGML_API void ggml_backend_device_register(ggml_backend_dev_t device);

#ifdef __cplusplus
}
#endif

// --- entry points of a backend that was written for ggml -----------------------------------------

// The last line of its sources. Such a backend knows no shutdown: it stays mapped once it is
// loaded. Of variants that all leave GGML_PLUGIN_PRIORITY and GGML_PLUGIN_CPU_FEATURES at 0 the
// first by name is used, whatever its score above 0.
#ifdef GGML_BACKEND_DL
#include "ggml-plugin.h"

// The first defines note and entry point from GGML_PLUGIN_NAME and its kin, the second replaces the
// score. Without GGML_BACKEND_DL, as in ggml, both are nothing.
#define GGML_BACKEND_DL_IMPL(reg_fn)                                                               \
    GGML_PLUGIN_NOTE(GGML_PLUGIN_NAME, GGML_PLUGIN_VARIANT, GGML_PLUGIN_VERSION,                   \
                     GGML_PLUGIN_PRIORITY, GGML_PLUGIN_CPU_FEATURES, GGML_PLUGIN_FLAG_NO_UNLOAD)   \
    GGML_PLUGIN_ENTRY(reg_fn, ggml_sdk_score, NULL, NULL)
#define GGML_BACKEND_DL_SCORE_IMPL(score_fn)                                                       \
    GGML_PLUGIN_EXTERN int ggml_sdk_score(void);                                                   \
    GGML_PLUGIN_EXTERN int ggml_sdk_score(void) {                                                  \
        return score_fn();                                                                         \
    }
#else
#define GGML_BACKEND_DL_IMPL(reg_fn)
#define GGML_BACKEND_DL_SCORE_IMPL(score_fn)
#endif

#endif
