// SPDX-License-Identifier: MIT
// ggml-backend.h: devices, buffers, streams, registry, scheduler.
//
// The objects, and who makes them:
//
//   backend (ggml_backend_reg_t)   what a plugin registers: "CPU", "CUDA", "Vulkan"; static
//   device (ggml_backend_dev_t)    a processor with memory: "CUDA0"; static
//   buffer type                    a kind of memory of a device; static
//   buffer                         a piece of that memory, which holds tensors; the caller frees it
//   stream (ggml_backend_t)        an ordered queue of work on a device; the caller frees it. In
//                                  ggml it is a backend, hence the names of functions
//   event                          a mark in a stream's work; the caller frees it
//   scheduler                      runs one graph on several streams; the caller frees it
//
// Lifetimes. Static objects live until their plugin is unloaded, which is refused while buffers,
// streams or events of it live. A buffer outlives the work that uses its tensors. Streams may be
// freed in any order, after waiting; buffers survive the stream that they were made with.
//
// Errors are as ggml.h says: nothing aborts, functions that return nothing leave a message. Devices
// may report a failure of queued work with any later call for the stream, at the latest when it is
// synchronised.
#ifndef GGML_BACKEND_H
#define GGML_BACKEND_H

#include "ggml-alloc.h"
#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGML_BACKEND_API GGML_API

// Most devices that ggml_backend_meta_device() makes one of.
#define GGML_BACKEND_META_MAX_DEVICES 16

// Handles. NULL is none; what a function makes of NULL is said there.
typedef struct ggml_backend_event *ggml_backend_event_t; // mark in the work of a stream
typedef void *ggml_backend_graph_plan_t;                 // graph prepared by a stream
typedef struct ggml_backend_reg *ggml_backend_reg_t;     // backend
typedef struct ggml_backend_device *ggml_backend_dev_t;  // device
typedef struct ggml_backend_sched *ggml_backend_sched_t; // scheduler

// What a buffer is for, which guides placement and fusion.
enum ggml_backend_buffer_usage {
    GGML_BACKEND_BUFFER_USAGE_ANY = 0,     // not said
    GGML_BACKEND_BUFFER_USAGE_WEIGHTS = 1, // constant once set: nodes go where their weights are
    GGML_BACKEND_BUFFER_USAGE_COMPUTE = 2, // results between nodes; allocators set it
};

// Kind of device; CPU for NULL, ACCEL with a message for one that this library does not know.
// [any-thread]
enum ggml_backend_dev_type {
    // the host's processor, with its memory; computes what others don't
    GGML_BACKEND_DEVICE_TYPE_CPU = 0,
    GGML_BACKEND_DEVICE_TYPE_GPU = 1,  // with memory of its own
    GGML_BACKEND_DEVICE_TYPE_IGPU = 2, // a GPU that shares the host's memory
    // helps the CPU with some operations, as a BLAS library does
    GGML_BACKEND_DEVICE_TYPE_ACCEL = 3,
    GGML_BACKEND_DEVICE_TYPE_META = 4, // several others as one: ggml_backend_meta_device()
};

// How the devices of a meta device share a tensor.
enum ggml_backend_meta_split_axis {
    GGML_BACKEND_SPLIT_AXIS_0 = 0, // each holds a part of the extent 0; likewise 1 to 3
    GGML_BACKEND_SPLIT_AXIS_1 = 1,
    GGML_BACKEND_SPLIT_AXIS_2 = 2,
    GGML_BACKEND_SPLIT_AXIS_3 = 3,
    GGML_BACKEND_SPLIT_AXIS_MIRRORED = 10, // each holds all of it
    GGML_BACKEND_SPLIT_AXIS_PARTIAL = 11,  // the sum of what they hold is the tensor
    GGML_BACKEND_SPLIT_AXIS_NONE = 98,     // not shared
    GGML_BACKEND_SPLIT_AXIS_UNKNOWN = 99,  // can't be derived from the sources
};

// What a device can do beyond the minimum; false means that the host does it another way.
struct ggml_backend_dev_caps {
    bool async;                // streams queue: calls return before the work is done
    bool host_buffer;          // ggml_backend_dev_host_buffer_type() is not NULL
    bool buffer_from_host_ptr; // ggml_backend_dev_buffer_from_host_ptr() works
    bool events;               // ggml_backend_event_new() works
    bool mmap_support;         // takes memory of mapped files through buffer_from_host_ptr
};

// Properties of a device: ggml_backend_dev_get_props(). Strings belong to the device.
struct ggml_backend_dev_props {
    const char *name;                  // short, unique in its plugin: "CUDA0"
    const char *description;           // what a person calls it
    size_t memory_free;                // bytes, at the time of the call; at most memory_total
    size_t memory_total;               // bytes; 0: not reported
    enum ggml_backend_dev_type type;   // kind of device
    const char *device_id;             // PCI "dddd:bb:dd.f", lower case, or NULL
    struct ggml_backend_dev_caps caps; // what it can do
};

// A property of a build ("AVX2", "1"). An array of them ends with two NULLs.
struct ggml_backend_feature {
    const char *name;
    const char *value;
};

// How a tensor lies on the n_devices members of a meta device. The split dimension is a row of
// segments; segment s is nr[s] repetitions of ne[s * n_devices + j] elements for each device j.
// Without a split: one segment, nr[0] = 1. One segment is the usual case; several let each device
// have its part of matrices that were merged into one, as q, k and v.
struct ggml_backend_meta_split_state {
    enum ggml_backend_meta_split_axis axis;         // which dimension, or how else
    int64_t ne[16 * GGML_BACKEND_META_MAX_DEVICES]; // elements, by segment and device
    uint32_t nr[16];                                // repetitions, by segment
    uint32_t n_segments;                            // 1 to 16
};

// A copy of a placed graph with all data in a new buffer of the stream's device; all members NULL
// on failure. Every tensor of the graph must have data; `extra` is not copied. Freed by
// ggml_backend_graph_copy_free(), which accepts a failed one. Blocks. [stream]
struct ggml_backend_graph_copy {
    ggml_backend_buffer_t buffer;         // data of all tensors that are no views
    struct ggml_context *ctx_allocated;   // these tensors
    struct ggml_context *ctx_unallocated; // views, and the graph
    struct ggml_cgraph *graph;            // with nodes in the same order; NULL: it failed
};

// Functions that a backend may offer through ggml_backend_reg_get_proc_address() under the name of
// the type without _t. Cast what that returns. A backend that lacks one returns NULL there.
//
//   comm_init              a group of streams, one per device, that add tensors up; NULL: it can't
//   comm_free              ends it
//   comm_allreduce_tensor  replaces tensors[i], one per stream, by their sum; false: did nothing
//   split_buffer_type      memory that spreads the rows of a matrix over devices by given weights
//   set_n_threads          threads of a stream, from its next graph on
//   dev_get_extra_bufts    further memory of a device, up to a NULL: weights in layouts of its own
//   set_abort_callback     what a stream asks between nodes; true ends the graph with ABORTED
//   get_features           properties of the build, static
typedef void *(*ggml_backend_comm_init_t)(ggml_backend_t *backends, size_t n_backends);
typedef void (*ggml_backend_comm_free_t)(void *comm_ctx);
typedef bool (*ggml_backend_comm_allreduce_tensor_t)(void *comm_ctx, struct ggml_tensor **tensors);
typedef ggml_backend_buffer_type_t (*ggml_backend_split_buffer_type_t)(int main_device,
                                                                       const float *tensor_split);
typedef void (*ggml_backend_set_n_threads_t)(ggml_backend_t backend, int n_threads);
typedef ggml_backend_buffer_type_t *(*ggml_backend_dev_get_extra_bufts_t)(
    ggml_backend_dev_t device);
typedef void (*ggml_backend_set_abort_callback_t)(ggml_backend_t backend,
                                                  ggml_abort_callback abort_callback,
                                                  void *abort_callback_data);
typedef struct ggml_backend_feature *(*ggml_backend_get_features_t)(ggml_backend_reg_t reg);

// Looks at results of nodes: see ggml_backend_sched_set_eval_callback().
typedef bool (*ggml_backend_sched_eval_callback)(struct ggml_tensor *t, bool ask, void *user_data);
// See ggml_backend_sched_set_copy_callback() and ggml_backend_sched_set_realloc_callback().
typedef bool (*ggml_backend_sched_copy_callback)(ggml_backend_t backend,
                                                 const struct ggml_tensor *src,
                                                 struct ggml_tensor *dst, struct ggml_cgraph *graph,
                                                 void *user_data);
typedef void (*ggml_backend_sched_realloc_callback)(ggml_backend_sched_t sched,
                                                    struct ggml_cgraph *graph,
                                                    bool backend_ids_changed,
                                                    bool graph_size_changed, void *user_data);

// Says how a static tensor (a weight, a cache) is to be spread over the devices of a meta device.
// Must give the same result for the same tensor each time; may be called from any thread that uses
// the device. A lock of all meta devices is held meanwhile: it may use them itself, but must not
// wait for another thread that does, or forks.
typedef struct ggml_backend_meta_split_state (*ggml_backend_meta_get_split_state_t)(
    const struct ggml_tensor *tensor, void *userdata);

// Receives the results of one node on both streams, which have been computed; false stops the
// comparison. See ggml_backend_compare_graph_backend().
typedef bool (*ggml_backend_eval_callback)(int node_index, struct ggml_tensor *t1,
                                           struct ggml_tensor *t2, void *user_data);

// --- buffer types --------------------------------------------------------------------------------

// Properties are constant but for get_alloc_size, which depends on the tensor.

// A buffer type is a kind of memory of a device; it lives as long as the device.

// Name ("CPU", "CUDA0"), constant; "NULL" for NULL. [any-thread]
GGML_API const char *ggml_backend_buft_name(ggml_backend_buffer_type_t buft);

// A buffer of `size` bytes with usage ANY, which the caller frees; NULL on failure. A size of 0
// gives an empty buffer without asking the device. Its content is undefined. Devices allocate
// slowly: make few large ones. Blocks. [any-thread]
GGML_API ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t buft,
                                                              size_t size);

// Alignment of tensors in bytes, a power of two; largest buffer in bytes, SIZE_MAX if unlimited.
// What a plugin reports wrongly is replaced by 32 and SIZE_MAX, with a message. NULL: 32 and 0.
// [any-thread]
GGML_API size_t ggml_backend_buft_get_alignment(ggml_backend_buffer_type_t buft);
GGML_API size_t ggml_backend_buft_get_max_size(ggml_backend_buffer_type_t buft);

// A buffer for those of the n tensors that have no memory yet and are no views, in which they and
// their views are placed: as ggml_backend_alloc_ctx_tensors_from_buft() does for a context. The
// caller frees it. NULL when nothing needed memory or on failure: then no tensor was changed.
// Blocks. [stream]
GGML_API ggml_backend_buffer_t ggml_backend_buft_alloc_buffer_n(ggml_backend_buffer_type_t buft,
                                                                struct ggml_tensor **tensors,
                                                                int n_tensors);

// Bytes that the previous function would allocate; 0 on failure. [stream]
GGML_API size_t ggml_backend_buft_get_alloc_size_n(ggml_backend_buffer_type_t buft,
                                                   struct ggml_tensor **tensors, int n_tensors);

// Bytes that the tensor occupies there, at least ggml_nbytes(): devices may pad rows, or add what
// they need to compute it. 0 for NULL. [any-thread]
GGML_API size_t ggml_backend_buft_get_alloc_size(ggml_backend_buffer_type_t buft,
                                                 const struct ggml_tensor *tensor);

// Whether tensor->data is a host address with the standard layout, so that programs and CPU devices
// can read and write it directly. Pinned memory is; memory with interleaved rows is not, wherever
// it lies. [any-thread]
GGML_API bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t buft);

// The device, or NULL for plain host memory. [any-thread]
GGML_API ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buft);

// The host's own memory: type "CPU", alignment 32, no device. Exists without any plugin.
// [any-thread]
GGML_API ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void);

// A buffer over host memory (type "CPU_Mapped") that stays the caller's and must outlive it,
// aligned to 32; NULL on failure. With a mapped file, tensors lie in it without being copied.
// [any-thread]
GGML_API ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size);

// --- buffers -------------------------------------------------------------------------------------

// A buffer holds tensors that allocators (ggml-alloc.h) or ggml_backend_tensor_alloc() placed in
// it; it does not know them, and nothing keeps two from overlapping.

// Frees the buffer and its memory; tensors in it become invalid, wherever they are still referred
// to. No queued work may still use it: synchronise streams first. NULL does nothing. Blocks.
// [stream]
GGML_API void ggml_backend_buffer_free(ggml_backend_buffer_t buffer);

// Name of its buffer type ("NULL" for NULL), and the type. [any-thread]
GGML_API const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer);
GGML_API ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer);

// Base address, possibly an opaque one of the device that must not be dereferenced; NULL for an
// empty buffer or one that stands for several. [any-thread]
GGML_API void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer);

// Size in bytes, at least what was asked for; of one that stands for several the sum. 0 for NULL.
// [any-thread]
GGML_API size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer);

// Those of the buffer's type: see ggml_backend_buft_get_alignment() and the following. [any-thread]
GGML_API size_t ggml_backend_buffer_get_alignment(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_max_size(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_alloc_size(ggml_backend_buffer_t buffer,
                                                   const struct ggml_tensor *tensor);
GGML_API bool ggml_backend_buffer_is_host(ggml_backend_buffer_t buffer);

// Lets the device prepare a tensor that was placed in the buffer; SUCCESS where it has nothing to
// do, else ALLOC_FAILED or FAILED with a message. Allocators call it; programs that set `buffer`
// and `data` by hand do. Calls for one buffer come to the device one after the other. [any-thread]
GGML_API enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer,
                                                          struct ggml_tensor *tensor);

// Sets every byte; an empty buffer has none. Not ordered against queued work. Blocks. [stream]
GGML_API void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value);

// What the buffer is for, also of the members of one that stands for several. Set WEIGHTS once the
// weights are in it, and before graphs that use them are scheduled: placement and fusion go by it,
// and a device may then pack or move them. An unknown usage leaves a message. May block. [stream]
GGML_API void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer,
                                            enum ggml_backend_buffer_usage usage);
GGML_API enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer);

// Drops what the device attached to the buffer's tensors, so that others can be placed there. Data
// is undefined after it. [stream]
GGML_API void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer);

// --- placing tensors -----------------------------------------------------------------------------

// For those who lay out memory by themselves; otherwise see ggml-alloc.h.

// Places a tensor without data at addr of the buffer and initialises it. FAILED without effect if
// it has data, is a view, or would reach outside; else the device's status, and the tensor is left
// as it was unless that is SUCCESS. addr is aligned as the buffer's type says. [stream]
GGML_API enum ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t buffer,
                                                    struct ggml_tensor *tensor, void *addr);

// The same for a view whose owner has been placed: buffer and data follow from it. Several threads
// may place views of one owner. [stream]
GGML_API enum ggml_status ggml_backend_view_init(struct ggml_tensor *tensor);

// --- data ----------------------------------------------------------------------------------------

// Offsets and sizes are bytes, offsets count from tensor->data, and the range must lie inside
// ggml_nbytes(tensor): otherwise nothing is copied. A size of 0 does nothing.

// Copies between the host and a tensor. On return the host memory may be reused. Not ordered
// against work queued on streams: synchronise before. For a view bytes count from its own first
// element. Some memory can only be reached in whole rows, or as a whole; other ranges leave a
// message and copy nothing. Blocks. [stream]
GGML_API void ggml_backend_tensor_set(struct ggml_tensor *tensor, const void *data, size_t offset,
                                      size_t size);
GGML_API void ggml_backend_tensor_get(const struct ggml_tensor *tensor, void *data, size_t offset,
                                      size_t size);

// n_copies pieces of `size` bytes, with a stride in bytes on either side: piece i is at offset + i
// * stride_tensor of the tensor and i * stride_data of the host memory. For columns of a matrix.
// Blocks. [stream]
GGML_API void ggml_backend_tensor_set_2d(struct ggml_tensor *tensor, const void *data,
                                         size_t offset, size_t size, size_t n_copies,
                                         size_t stride_tensor, size_t stride_data);
GGML_API void ggml_backend_tensor_get_2d(const struct ggml_tensor *tensor, void *data,
                                         size_t offset, size_t size, size_t n_copies,
                                         size_t stride_tensor, size_t stride_data);

// Sets every byte of a range of the tensor. Blocks. [stream]
GGML_API void ggml_backend_tensor_memset(struct ggml_tensor *tensor, uint8_t value, size_t offset,
                                         size_t size);

// Queue the same transfers on a stream; the host memory must stay valid, and for `get` is only
// filled, when the stream is synchronised. They keep their order with the graphs of that stream.
// Where a device can't queue, or the tensor is another device's, the stream is synchronised and the
// call blocks. Pinned memory (ggml_backend_dev_host_buffer_type()) makes them fast. [stream]
GGML_API void ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                            const void *data, size_t offset, size_t size);
GGML_API void ggml_backend_tensor_set_2d_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                               const void *data, size_t offset, size_t size,
                                               size_t n_copies, size_t stride_tensor,
                                               size_t stride_data);
GGML_API void ggml_backend_tensor_get_async(ggml_backend_t backend,
                                            const struct ggml_tensor *tensor, void *data,
                                            size_t offset, size_t size);
GGML_API void ggml_backend_tensor_get_2d_async(ggml_backend_t backend,
                                               const struct ggml_tensor *tensor, void *data,
                                               size_t offset, size_t size, size_t n_copies,
                                               size_t stride_tensor, size_t stride_data);

// Copies src to dst, of the same type, extents and strides, on any devices; through the host where
// there is no direct way. Different layouts leave a message (ggml_cpy() in a graph converts). Same
// pointer: nothing. Blocks, synchronises no stream. [stream]
GGML_API void ggml_backend_tensor_copy(const struct ggml_tensor *src, struct ggml_tensor *dst);

// Queues the same after the work queued on backend_src; later work on backend_dst waits for it, so
// no synchronisation is needed before reading dst there. src must not be overwritten by work that
// other streams do meanwhile. Where no direct way exists, both streams are synchronised and the
// copy blocks. [stream]
GGML_API void ggml_backend_tensor_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                                             const struct ggml_tensor *src,
                                             struct ggml_tensor *dst);

// --- streams -------------------------------------------------------------------------------------

// Work of one stream runs in the order in which it was queued; that of different streams in any,
// unless events or ggml_backend_tensor_copy_async() order it. A stream is for one thread at a time;
// different streams, also of one device, are independent.
//
// An iteration with a stream that queues:
//
//     ggml_backend_tensor_set_async(stream, tokens, host_tokens, 0, ggml_nbytes(tokens));
//     if (ggml_backend_graph_compute_async(stream, graph) != GGML_STATUS_SUCCESS)
//         return fail(ggml_last_error()); // nothing of the graph is queued
//     ggml_backend_tensor_get_async(stream, logits, host_logits, 0, ggml_nbytes(logits));
//     prepare_the_next_batch(); // meanwhile; leave tokens, host_tokens and host_logits alone
//     ggml_clear_error();
//     ggml_backend_synchronize(stream);
//     if (ggml_last_status() != GGML_HOST_OK) // failures of queued work show here
//         return fail(ggml_last_error());
//     use(host_logits);

// A stream (ggml_backend_t) is an ordered queue of work on a device.

// 16-byte identity of the kind of stream; NULL for NULL. Equal for streams of one backend's
// devices. [any-thread]
GGML_API ggml_guid_t ggml_backend_guid(ggml_backend_t backend);

// Name, constant; "NULL" for NULL. [any-thread]
GGML_API const char *ggml_backend_name(ggml_backend_t backend);

// Waits for queued work and ends the stream. Its plans must be freed before; buffers stay. A
// scheduler that uses it can only be freed afterwards. NULL does nothing. [stream]
GGML_API void ggml_backend_free(ggml_backend_t backend);

// The stream's device. [any-thread]
GGML_API ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend);

// Default buffer type of the device (NULL on failure), and what that says of alignment and size; a
// buffer of it. See the functions of buffer types. [any-thread]
GGML_API ggml_backend_buffer_type_t ggml_backend_get_default_buffer_type(ggml_backend_t backend);
GGML_API size_t ggml_backend_get_alignment(ggml_backend_t backend);
GGML_API size_t ggml_backend_get_max_size(ggml_backend_t backend);
GGML_API ggml_backend_buffer_t ggml_backend_alloc_buffer(ggml_backend_t backend, size_t size);

// Waits for all queued work. A failure of it is in ggml_last_error() afterwards; call
// ggml_clear_error() before to tell it from older ones. Returns at once where nothing queues.
// [stream]
GGML_API void ggml_backend_synchronize(ggml_backend_t backend);

// Computes the nodes in order, skipping those that no build call flagged. FAILED with a message for
// a graph in error, one with unplaced tensors, or an operation that the device does not support;
// ALLOC_FAILED and ABORTED as they say; results are then undefined. What the graph refers to is
// checked before anything runs. Waits for completion. [stream]
GGML_API enum ggml_status ggml_backend_graph_compute(ggml_backend_t backend,
                                                     struct ggml_cgraph *cgraph);

// The same without waiting: SUCCESS means queued, and a failure later shows as said at
// ggml_backend_synchronize(). Work queued on the stream before is done first, and what is queued
// after waits for it. Until the stream is synchronised the graph, its tensors and their buffers
// must live and not change; inputs may be overwritten by transfers that are queued on the same
// stream. Where a device does not queue it returns when all is done. [stream]
GGML_API enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend,
                                                           struct ggml_cgraph *cgraph);

// A graph prepared once to be computed often; graph and tensors must outlive it, and it must end
// before its stream. Changing the graph is not seen by it; data of tensors may change. NULL where
// the device has no plans, and with a message on failure. [stream]
GGML_API ggml_backend_graph_plan_t ggml_backend_graph_plan_create(ggml_backend_t backend,
                                                                  struct ggml_cgraph *cgraph);

// Ends a plan; NULL does nothing. [stream]
GGML_API void ggml_backend_graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan);

// Computes it; statuses as ggml_backend_graph_compute(). May return before it is done: synchronise.
// [stream]
GGML_API enum ggml_status ggml_backend_graph_plan_compute(ggml_backend_t backend,
                                                          ggml_backend_graph_plan_t plan);

// As the ggml_backend_dev_ functions on the stream's device. [any-thread]
GGML_API bool ggml_backend_supports_op(ggml_backend_t backend, const struct ggml_tensor *op);
GGML_API bool ggml_backend_supports_buft(ggml_backend_t backend, ggml_backend_buffer_type_t buft);
GGML_API bool ggml_backend_offload_op(ggml_backend_t backend, const struct ggml_tensor *op);

// --- events --------------------------------------------------------------------------------------

// An event lets one stream wait for another's work without stopping the host:
//
//     ggml_backend_event_t event = ggml_backend_event_new(device_a); // NULL: it has none
//     ggml_backend_graph_compute_async(stream_a, producer);
//     ggml_backend_event_record(event, stream_a);
//     ggml_backend_event_wait(stream_b, event); // stream_b goes on when the producer is done
//     ggml_backend_graph_compute_async(stream_b, consumer);
//     ...
//     ggml_backend_event_synchronize(event); // the host waits: the producer is done
//     ggml_backend_event_free(event);

// An event of the device, which the caller frees; NULL with a message where the device has none
// (caps.events). [any-thread]
GGML_API ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device);

// Ends an event, recorded or not; what waits for it still ends. NULL does nothing. [stream]
GGML_API void ggml_backend_event_free(ggml_backend_event_t event);

// Marks the work queued on the stream so far; recording again replaces the mark. The stream is one
// of the event's device, else nothing is recorded and a message left. [stream]
GGML_API void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend);

// Blocks until the marked work is done; at once if never recorded. A failure of that work leaves a
// message. [stream]
GGML_API void ggml_backend_event_synchronize(ggml_backend_event_t event);

// Makes later work of the stream wait for the mark as it is now, without blocking the caller.
// Between devices of different plugins, and where a device can't wait, the host waits instead: it
// blocks. [stream]
GGML_API void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

// --- devices -------------------------------------------------------------------------------------

// Devices are static objects: they live until their plugin is unloaded.

// Short name ("CUDA0") and what a person calls it, constant; "NULL" for NULL. [any-thread]
GGML_API const char *ggml_backend_dev_name(ggml_backend_dev_t device);
GGML_API const char *ggml_backend_dev_description(ggml_backend_dev_t device);

// Bytes of memory, free <= total; both 0 where nothing is reported. Either output may be NULL.
// "Free" is a snapshot that other processes change. [any-thread]
GGML_API void ggml_backend_dev_memory(ggml_backend_dev_t device, size_t *free, size_t *total);

// Kind of device; CPU for NULL. [any-thread]
GGML_API enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device);

// Fills *props, which is zeroed first; its strings belong to the device. [any-thread]
GGML_API void ggml_backend_dev_get_props(ggml_backend_dev_t device,
                                         struct ggml_backend_dev_props *props);

// The backend that offers it; NULL for devices made by ggml_backend_meta_device(). [any-thread]
GGML_API ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device);

// A new stream, which the caller frees; params is in the backend's own syntax, or NULL. NULL on
// failure. May take long: GPUs set up a context. Several streams of a device are independent.
// [any-thread]
GGML_API ggml_backend_t ggml_backend_dev_init(ggml_backend_dev_t device, const char *params);

// Preferred memory of the device; pinned host memory for fast transfers, or NULL without a message
// if it has none. [any-thread]
GGML_API ggml_backend_buffer_type_t ggml_backend_dev_buffer_type(ggml_backend_dev_t device);
GGML_API ggml_backend_buffer_type_t ggml_backend_dev_host_buffer_type(ggml_backend_dev_t device);

// A buffer over host memory that stays the caller's and must outlive it, for tensors of at most
// max_tensor_size bytes (a device with windows of limited size lets them overlap by as much). NULL
// on failure or where caps.buffer_from_host_ptr is false. [any-thread]
GGML_API ggml_backend_buffer_t ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_t device,
                                                                     void *ptr, size_t size,
                                                                     size_t max_tensor_size);

// Whether the device computes this node: by operation, types, extents and strides of it and of its
// sources. Tensors need no buffers; those that have some must be in memory that the device can use.
// False for error tensors, with a message, and for what came after its plugin was built.
// [any-thread]
GGML_API bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op);

// Whether the device can use tensors in that memory as it is, without a copy. [any-thread]
GGML_API bool ggml_backend_dev_supports_buft(ggml_backend_dev_t device,
                                             ggml_backend_buffer_type_t buft);

// Whether it pays to copy the node's operands (its weights, typically) to the device for it: large
// batches do. Schedulers with op_offload ask. [any-thread]
GGML_API bool ggml_backend_dev_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op);

// --- registry ------------------------------------------------------------------------------------

// Plugins become backends by loading: built-in ones by themselves, others by the calls below.
// Handles stay valid until their plugin is unloaded; indices may change whenever one is loaded or
// unloaded.
//
//     ggml_backend_load_all();
//     for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
//         ggml_backend_dev_t device = ggml_backend_dev_get(i);
//         size_t free, total;
//         ggml_backend_dev_memory(device, &free, &total);
//         printf("%s: %s, %zu of %zu MiB free\n", ggml_backend_dev_name(device),
//                ggml_backend_dev_description(device), free >> 20, total >> 20);
//     }

// A backend (ggml_backend_reg_t) is what a plugin registers. Reads are lock-free; loading and
// unloading are serialised. Details of a failure: ggml-host.h.

// Name, constant, NULL for NULL; number of devices; device by index, NULL out of range.
// [any-thread]
GGML_API const char *ggml_backend_reg_name(ggml_backend_reg_t reg);
GGML_API size_t ggml_backend_reg_dev_count(ggml_backend_reg_t reg);
GGML_API ggml_backend_dev_t ggml_backend_reg_dev_get(ggml_backend_reg_t reg, size_t index);

// A function of the backend by name, to be cast to its type, or NULL without a message. Valid until
// the plugin is unloaded. Beyond the types above: "ggml_backend_cpu_set_use_ref" and others of
// ggml-cpu.h, and what a backend defines for itself. [any-thread]
GGML_API void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t reg, const char *name);

// Adds a backend or a device that is linked into the application; static objects, which must live
// until the process ends. NULL and repetitions are ignored. [any-thread]
GGML_API void ggml_backend_register(ggml_backend_reg_t reg);
GGML_API void ggml_backend_device_register(ggml_backend_dev_t device);

// Number of backends; backend by index, NULL out of range. The first call loads built-in ones.
// [any-thread]
GGML_API size_t ggml_backend_reg_count(void);
GGML_API ggml_backend_reg_t ggml_backend_reg_get(size_t index);

// Number of devices; device by index, NULL with a message out of range. Order: discrete GPUs,
// integrated ones, accelerators, CPU. GGML_DEVICES filters them (docs/environment.md). [any-thread]
GGML_API size_t ggml_backend_dev_count(void);
GGML_API ggml_backend_dev_t ggml_backend_dev_get(size_t index);

// The first of that name, ASCII case ignored, or NULL without a message. [any-thread]
GGML_API ggml_backend_reg_t ggml_backend_reg_by_name(const char *name);
GGML_API ggml_backend_dev_t ggml_backend_dev_by_name(const char *name);

// The first device of that type, or NULL without a message; of CPU devices those that work in host
// memory come first. [any-thread]
GGML_API ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type);

// A stream on the first device of that name or type, as ggml_backend_dev_init(); NULL with a
// message if there is none. [any-thread]
GGML_API ggml_backend_t ggml_backend_init_by_name(const char *name, const char *params);
GGML_API ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type,
                                                  const char *params);

// A stream on the best device: the first GPU, else integrated GPU, else CPU. NULL if there is none
// or it does not start; load plugins first. [any-thread]
GGML_API ggml_backend_t ggml_backend_init_best(void);

// Loads one plugin by path; NULL on failure, with a message that says what to do. As
// ggml_plugin_load() in ggml-host.h, but a plugin that is loaded already is returned again. Runs
// the plugin's start-up code. Blocks. [any-thread]
GGML_API ggml_backend_reg_t ggml_backend_load(const char *path);

// Unloads a plugin; leaves a message (BUSY) and does nothing while objects of it live. Handles of
// it are invalid afterwards. As ggml_plugin_unload(). [any-thread]
GGML_API void ggml_backend_unload(ggml_backend_reg_t reg);

// Loads every plugin along the search path, or in one directory (NULL: the search path). As
// ggml_plugin_load_all(): of several variants of a plugin the best for this machine is taken, and
// what is refused is in the record (ggml-host.h). Blocks; idempotent. [any-thread]
GGML_API void ggml_backend_load_all(void);
GGML_API void ggml_backend_load_all_from_path(const char *dir_path);

// --- scheduler -----------------------------------------------------------------------------------

// A program that computes graphs of one shape after another:
//
//     ggml_backend_t streams[] = {gpu, cpu}; // by preference; the last on a CPU device
//     ggml_backend_sched_t sched = ggml_backend_sched_new(streams, NULL, 2, 4096, false, true);
//     if (!sched || !ggml_backend_sched_reserve(sched, build(largest_batch))) return fail();
//
//     for (;;) {
//         struct ggml_cgraph *graph = build(batch); // in a context that is reset before
//         ggml_backend_sched_reset(sched);
//         if (!ggml_backend_sched_alloc_graph(sched, graph)) return fail();
//         ggml_backend_tensor_set(tokens, batch->tokens, 0, ggml_nbytes(tokens));
//         if (ggml_backend_sched_graph_compute(sched, graph) != GGML_STATUS_SUCCESS) return fail();
//         ggml_backend_tensor_get(logits, out, 0, ggml_nbytes(logits));
//     }
//     ggml_backend_sched_free(sched);
//
// Mark inputs with ggml_set_input() and results with ggml_set_output() while building. Weights lie
// in buffers with usage WEIGHTS. A graph that is computed again as it is needs neither reset nor
// alloc_graph. ggml-host.h has more: limits, profiles, and what was placed where.

// Runs one graph on several streams: assigns each node, cuts the graph into splits, copies what a
// split can't read in place, allocates and runs. It rewrites src[] of the graph's nodes: a graph is
// good for one split. Sequence: reserve (worst case), then per graph: reset, alloc_graph, set the
// inputs, graph_compute.

// backends: n_backends streams in order of preference, the last on a CPU device, which computes
// what no other does; one may be listed twice. bufts: memory of results for each, which it must be
// able to use, or NULL for the defaults. graph_size: nodes and leafs of the largest graph, a hint.
// parallel: four copies of inputs and of what is copied between streams, so that graphs overlap
// (pipelining). op_offload: let other devices take operations whose weights are in host memory,
// where they say that it pays. NULL on failure. The streams stay the caller's, who may free them
// before the scheduler: from then on it can only be freed. [any-thread]
GGML_API ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends,
                                                     ggml_backend_buffer_type_t *bufts,
                                                     int n_backends, size_t graph_size,
                                                     bool parallel, bool op_offload);

// Waits for its streams and ends it with its buffers: tensors that it allocated become invalid.
// NULL does nothing. [stream]
GGML_API void ggml_backend_sched_free(ggml_backend_sched_t sched);

// Sizes in bytes of the buffers that a graph needs, one per stream, without allocating; all 0 on
// failure. Streams with the same memory share a buffer: each reports it. Resets. [stream]
GGML_API void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched,
                                              struct ggml_cgraph *measure_graph, size_t *sizes);

// Allocates for a graph of the largest size, then resets, so that later graphs that need no more
// allocate nothing; false when memory runs out or the graph can't be split. The graph is left as it
// was. Waits for all streams. Blocks. [stream]
GGML_API bool ggml_backend_sched_reserve(ggml_backend_sched_t sched,
                                         struct ggml_cgraph *measure_graph);

// Number of streams; stream by index, NULL out of range. [stream]
GGML_API int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched);
GGML_API ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i);

// Of the last split: number of splits (1: everything ran on one stream), and copies per input (1,
// or 4 with `parallel`). [stream]
GGML_API int ggml_backend_sched_get_n_splits(ggml_backend_sched_t sched);
GGML_API int ggml_backend_sched_get_n_copies(ggml_backend_sched_t sched);

// Memory type of results, and bytes allocated, for a stream; NULL and 0 for a foreign one. Of
// streams with the same memory the first reports the size. [stream]
GGML_API ggml_backend_buffer_type_t ggml_backend_sched_get_buffer_type(ggml_backend_sched_t sched,
                                                                       ggml_backend_t backend);
GGML_API size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t sched,
                                                   ggml_backend_t backend);

// Pins a node (or input) to a stream until the next reset; call it between reset and split. Whether
// the stream computes the node is not asked: if it doesn't, computing fails. What writes in place
// to memory that the stream can't reach is computed where that is, or splitting fails. [stream]
GGML_API void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t sched,
                                                    struct ggml_tensor *node,
                                                    ggml_backend_t backend);

// Where a node of the last split runs, or where it is pinned; NULL if that is not known. [stream]
GGML_API ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t sched,
                                                              struct ggml_tensor *node);

// Assigns and splits only; a node that no stream supports puts the graph in error. For looking at
// the result: computing splits by itself. [stream]
GGML_API void ggml_backend_sched_split_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

// Splits and allocates; false on failure, or if a graph is allocated already: call
// ggml_backend_sched_reset() first. Afterwards the graph's inputs can be set. Buffers grow where
// they must, which waits for all streams. [stream]
GGML_API bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

// Computes the allocated graph, allocating it first if there is none; ALLOC_FAILED if that fails,
// or the status of the first split that failed, whose number and stream the message names. A graph
// that is not the allocated one is FAILED (ggml 0.27 computes the allocated one instead). After a
// failure nothing is left running. Waits for completion; the _async form does not: leave graph,
// inputs and results alone until ggml_backend_sched_synchronize(). [stream]
GGML_API enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched,
                                                           struct ggml_cgraph *graph);
GGML_API enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched,
                                                                 struct ggml_cgraph *graph);

// Waits for every stream. Failures of queued work leave a message. [stream]
GGML_API void ggml_backend_sched_synchronize(ggml_backend_sched_t sched);

// Forgets the graph, its assignments and pins; its tensors' addresses become invalid. Buffers and
// callbacks stay. Cheap, and does not wait: what is queued goes on. [stream]
GGML_API void ggml_backend_sched_reset(ggml_backend_sched_t sched);

// Sets what is called around nodes during a compute: with `ask` it says whether it wants the node's
// data, then it is called again with the data there, and false ends the compute with ABORTED (in
// ggml 0.27 only the rest of the split). Each node is asked for once, in order. Computing stops at
// every node that is wanted and waits for it: slow, for debugging and collecting statistics. NULL:
// none. [stream]
GGML_API void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t sched,
                                                   ggml_backend_sched_eval_callback callback,
                                                   void *user_data);

// Sets what is called for each weight in host memory of which a split needs a copy, after the
// split's other inputs were copied. `src` is the weight, `dst` its copy on the stream `backend`,
// and `graph` the split's: the callback queues on that stream the copies of what the split will
// read, and returns true; false leaves the whole weight to the scheduler. NULL: none. [stream]
GGML_API void ggml_backend_sched_set_copy_callback(ggml_backend_sched_t sched,
                                                   ggml_backend_sched_copy_callback callback,
                                                   void *user_data);

// Sets what is called when the buffers that are there do not suffice for `graph` and are about to
// be replaced, which waits for all streams: whether streams of its nodes changed since the last
// graph of as many nodes, and whether their number did. For finding out why a program reserves too
// little. NULL: none. [stream]
GGML_API void ggml_backend_sched_set_realloc_callback(ggml_backend_sched_t sched,
                                                      ggml_backend_sched_realloc_callback callback,
                                                      void *user_data);

// --- several devices as one ----------------------------------------------------------------------

// Tensor parallelism: see docs/meta-device.md.

// "0".."3", "MIRRORED", "PARTIAL", "NONE", else "UNKNOWN"; constant. [any-thread]
GGML_API const char *
ggml_backend_meta_split_axis_name(enum ggml_backend_meta_split_axis split_axis);

// A device that spreads tensors over n_devs (1..16) others as the callback says, and computes on
// all of them; what tensors between are like follows from the operations. The same arguments return
// the same device; it lives for the process and is not registered. get_split_state_ud must live as
// long. NULL on failure. [any-thread]
GGML_API ggml_backend_dev_t ggml_backend_meta_device(
    ggml_backend_dev_t *devs, size_t n_devs, ggml_backend_meta_get_split_state_t get_split_state,
    void *get_split_state_ud);

// --- comparing devices ---------------------------------------------------------------------------

// A copy of a placed graph with all data in a new buffer of the stream's device; all members NULL
// on failure. Freed by ggml_backend_graph_copy_free(), which accepts that. Blocks. [stream]
GGML_API struct ggml_backend_graph_copy ggml_backend_graph_copy(ggml_backend_t backend,
                                                                struct ggml_cgraph *graph);
GGML_API void ggml_backend_graph_copy_free(struct ggml_backend_graph_copy copy);

// Computes the graph on both streams (the second has a copy of it) and hands each pair of results
// to the callback, node by node; its false stops. Each node is computed by itself, so nothing is
// fused, and errors add up along the graph. With test_nodes: whole graphs, fused as usual, and only
// those nodes, whatever the callback returns. False when the copy or a compute failed, or no test
// node is in the graph; true otherwise, also if the callback stopped it. Blocks. [stream]
GGML_API bool ggml_backend_compare_graph_backend(ggml_backend_t backend1, ggml_backend_t backend2,
                                                 struct ggml_cgraph *graph,
                                                 ggml_backend_eval_callback callback,
                                                 void *user_data,
                                                 struct ggml_tensor const *const *test_nodes,
                                                 size_t num_test_nodes);

#ifdef __cplusplus
}
#endif

#endif
