// SPDX-License-Identifier: MIT
// ggml-backend.h: devices, buffers, streams, registry, scheduler.
#ifndef GGML_BACKEND_H
#define GGML_BACKEND_H

#include "ggml-alloc.h"
#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGML_BACKEND_API GGML_API

#define GGML_BACKEND_META_MAX_DEVICES 16

typedef struct ggml_backend_event *ggml_backend_event_t;
typedef void *ggml_backend_graph_plan_t;
typedef struct ggml_backend_reg *ggml_backend_reg_t;
typedef struct ggml_backend_device *ggml_backend_dev_t;
typedef struct ggml_backend_sched *ggml_backend_sched_t;

enum ggml_backend_buffer_usage {
    GGML_BACKEND_BUFFER_USAGE_ANY = 0,
    GGML_BACKEND_BUFFER_USAGE_WEIGHTS = 1,
    GGML_BACKEND_BUFFER_USAGE_COMPUTE = 2,
};

enum ggml_backend_dev_type {
    GGML_BACKEND_DEVICE_TYPE_CPU = 0,
    GGML_BACKEND_DEVICE_TYPE_GPU = 1,
    GGML_BACKEND_DEVICE_TYPE_IGPU = 2,
    GGML_BACKEND_DEVICE_TYPE_ACCEL = 3,
    GGML_BACKEND_DEVICE_TYPE_META = 4,
};

enum ggml_backend_meta_split_axis {
    GGML_BACKEND_SPLIT_AXIS_0 = 0,
    GGML_BACKEND_SPLIT_AXIS_1 = 1,
    GGML_BACKEND_SPLIT_AXIS_2 = 2,
    GGML_BACKEND_SPLIT_AXIS_3 = 3,
    GGML_BACKEND_SPLIT_AXIS_MIRRORED = 10,
    GGML_BACKEND_SPLIT_AXIS_PARTIAL = 11,
    GGML_BACKEND_SPLIT_AXIS_NONE = 98,
    GGML_BACKEND_SPLIT_AXIS_UNKNOWN = 99,
};

struct ggml_backend_dev_caps {
    bool async;
    bool host_buffer;
    bool buffer_from_host_ptr;
    bool events;
    bool mmap_support;
};

struct ggml_backend_dev_props {
    const char *name;
    const char *description;
    size_t memory_free;
    size_t memory_total;
    enum ggml_backend_dev_type type;
    const char *device_id; // PCI "dddd:bb:dd.f", lower case, or NULL
    struct ggml_backend_dev_caps caps;
};

// An array of them ends with two NULLs.
struct ggml_backend_feature {
    const char *name;
    const char *value;
};

// The split dimension is a row of segments; segment s is nr[s] repetitions of ne[s * n_devices + j]
// elements for each device j. Without a split: one segment, nr[0] = 1.
struct ggml_backend_meta_split_state {
    enum ggml_backend_meta_split_axis axis;
    int64_t ne[16 * GGML_BACKEND_META_MAX_DEVICES];
    uint32_t nr[16];
    uint32_t n_segments;
};

// See ggml_backend_graph_copy().
struct ggml_backend_graph_copy {
    ggml_backend_buffer_t buffer;
    struct ggml_context *ctx_allocated;
    struct ggml_context *ctx_unallocated;
    struct ggml_cgraph *graph;
};

// Functions that a backend may offer through ggml_backend_reg_get_proc_address() under the name of
// the type without _t.
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
// See ggml_backend_sched_set_eval_callback().
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
// How a static tensor is spread over the devices of a meta device.
typedef struct ggml_backend_meta_split_state (*ggml_backend_meta_get_split_state_t)(
    const struct ggml_tensor *tensor, void *userdata);
// Receives the results of one node on both streams; false stops the comparison.
typedef bool (*ggml_backend_eval_callback)(int node_index, struct ggml_tensor *t1,
                                           struct ggml_tensor *t2, void *user_data);

// --- buffer types --------------------------------------------------------------------------------

// A buffer type is a kind of memory of a device; it lives as long as the device.

// Name ("CPU", "CUDA0"), constant; "NULL" for NULL. [any-thread]
GGML_API const char *ggml_backend_buft_name(ggml_backend_buffer_type_t buft);

// A buffer of `size` bytes with usage ANY, which the caller frees; NULL on failure. A size of 0
// gives an empty buffer without asking the device. Blocks. [any-thread]
GGML_API ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t buft,
                                                              size_t size);

// Alignment of tensors in bytes, a power of two; largest buffer in bytes, SIZE_MAX if unlimited.
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

// Bytes that the tensor occupies there, at least ggml_nbytes(). [any-thread]
GGML_API size_t ggml_backend_buft_get_alloc_size(ggml_backend_buffer_type_t buft,
                                                 const struct ggml_tensor *tensor);

// Whether tensor->data is a host address with the standard layout. [any-thread]
GGML_API bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t buft);

// The device, or NULL for plain host memory. [any-thread]
GGML_API ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buft);

// The host's own memory: type "CPU", alignment 32, no device. Exists without any plugin.
// [any-thread]
GGML_API ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void);

// A buffer over host memory that stays the caller's, aligned to 32; NULL on failure. [any-thread]
GGML_API ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size);

// --- buffers -------------------------------------------------------------------------------------

// Frees the buffer and its memory; tensors in it become invalid. NULL does nothing. Blocks.
// [stream]
GGML_API void ggml_backend_buffer_free(ggml_backend_buffer_t buffer);

// Name of its buffer type ("NULL" for NULL), and the type. [any-thread]
GGML_API const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer);
GGML_API ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer);

// Base address, possibly an opaque one of the device; NULL for an empty buffer or one that stands
// for several. [any-thread]
GGML_API void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer);

// Size in bytes. [any-thread]
GGML_API size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer);

// Those of the buffer's type. [any-thread]
GGML_API size_t ggml_backend_buffer_get_alignment(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_max_size(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_alloc_size(ggml_backend_buffer_t buffer,
                                                   const struct ggml_tensor *tensor);
GGML_API bool ggml_backend_buffer_is_host(ggml_backend_buffer_t buffer);

// Lets the device prepare a tensor that was placed in the buffer; SUCCESS where it has nothing to
// do. [stream]
GGML_API enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer,
                                                          struct ggml_tensor *tensor);

// Sets every byte; an empty buffer has none. Blocks. [stream]
GGML_API void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value);

// What the buffer is for (WEIGHTS guides placement and fusion), also of the members of one that
// stands for several. [stream]
GGML_API void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer,
                                            enum ggml_backend_buffer_usage usage);
GGML_API enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer);

// Drops what the device attached to the buffer's tensors. [stream]
GGML_API void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer);

// --- placing tensors -----------------------------------------------------------------------------

// Places a tensor without data at addr of the buffer and initialises it. FAILED without effect if
// it has data, is a view, or would reach outside; else the device's status. [stream]
GGML_API enum ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t buffer,
                                                    struct ggml_tensor *tensor, void *addr);

// The same for a view whose owner has been placed. [stream]
GGML_API enum ggml_status ggml_backend_view_init(struct ggml_tensor *tensor);

// --- data ----------------------------------------------------------------------------------------

// Offsets and sizes are bytes, offsets count from tensor->data, and the range must lie inside
// ggml_nbytes(tensor): otherwise nothing is copied. A size of 0 does nothing.

// Copies between the host and a tensor. On return the host memory may be reused. Not ordered
// against work queued on streams: synchronise before. Blocks. [stream]
GGML_API void ggml_backend_tensor_set(struct ggml_tensor *tensor, const void *data, size_t offset,
                                      size_t size);
GGML_API void ggml_backend_tensor_get(const struct ggml_tensor *tensor, void *data, size_t offset,
                                      size_t size);

// n_copies pieces of `size` bytes, with a stride in bytes on either side. Blocks. [stream]
GGML_API void ggml_backend_tensor_set_2d(struct ggml_tensor *tensor, const void *data,
                                         size_t offset, size_t size, size_t n_copies,
                                         size_t stride_tensor, size_t stride_data);
GGML_API void ggml_backend_tensor_get_2d(const struct ggml_tensor *tensor, void *data,
                                         size_t offset, size_t size, size_t n_copies,
                                         size_t stride_tensor, size_t stride_data);

// Sets every byte of a range of the tensor. Blocks. [stream]
GGML_API void ggml_backend_tensor_memset(struct ggml_tensor *tensor, uint8_t value, size_t offset,
                                         size_t size);

// Queue the same transfers on a stream of the tensor's device; the host memory must stay valid
// until the stream is synchronised. Where a device can't queue, they block. [stream]
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
// there is no direct way. Same pointer: nothing. Blocks, synchronises no stream. [stream]
GGML_API void ggml_backend_tensor_copy(const struct ggml_tensor *src, struct ggml_tensor *dst);

// Queues the same after the work queued on backend_src; later work on backend_dst waits for it.
// Where no direct way exists, both streams are synchronised and the copy blocks. [stream]
GGML_API void ggml_backend_tensor_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst,
                                             const struct ggml_tensor *src,
                                             struct ggml_tensor *dst);

// --- streams -------------------------------------------------------------------------------------

// A stream (ggml_backend_t) is an ordered queue of work on a device.

// 16-byte identity of the backend that implements the stream; NULL for NULL. [any-thread]
GGML_API ggml_guid_t ggml_backend_guid(ggml_backend_t backend);

// Name, constant; "NULL" for NULL. [any-thread]
GGML_API const char *ggml_backend_name(ggml_backend_t backend);

// Waits for queued work and ends the stream. NULL does nothing. [stream]
GGML_API void ggml_backend_free(ggml_backend_t backend);

// The stream's device. [any-thread]
GGML_API ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend);

// Default buffer type of the device, and what it answers. [any-thread]
GGML_API ggml_backend_buffer_type_t ggml_backend_get_default_buffer_type(ggml_backend_t backend);
GGML_API size_t ggml_backend_get_alignment(ggml_backend_t backend);
GGML_API size_t ggml_backend_get_max_size(ggml_backend_t backend);
GGML_API ggml_backend_buffer_t ggml_backend_alloc_buffer(ggml_backend_t backend, size_t size);

// Waits for all queued work. [stream]
GGML_API void ggml_backend_synchronize(ggml_backend_t backend);

// Computes the nodes in order, skipping those that no build call flagged. FAILED with a message for
// a graph in error, one with unplaced tensors, or an operation that the device does not support;
// ALLOC_FAILED and ABORTED as they say; results are then undefined. Waits for completion. [stream]
GGML_API enum ggml_status ggml_backend_graph_compute(ggml_backend_t backend,
                                                     struct ggml_cgraph *cgraph);

// The same without waiting: SUCCESS means queued. The graph must live until synchronised. [stream]
GGML_API enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend,
                                                           struct ggml_cgraph *cgraph);

// A graph prepared once to be computed often; graph and tensors must outlive it, and it must end
// before its stream. NULL where the device has no plans. [stream]
GGML_API ggml_backend_graph_plan_t ggml_backend_graph_plan_create(ggml_backend_t backend,
                                                                  struct ggml_cgraph *cgraph);

// Ends a plan; NULL does nothing. [stream]
GGML_API void ggml_backend_graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan);

// Computes it; statuses as ggml_backend_graph_compute(). [stream]
GGML_API enum ggml_status ggml_backend_graph_plan_compute(ggml_backend_t backend,
                                                          ggml_backend_graph_plan_t plan);

// As the ggml_backend_dev_ functions on the stream's device. [any-thread]
GGML_API bool ggml_backend_supports_op(ggml_backend_t backend, const struct ggml_tensor *op);
GGML_API bool ggml_backend_supports_buft(ggml_backend_t backend, ggml_backend_buffer_type_t buft);
GGML_API bool ggml_backend_offload_op(ggml_backend_t backend, const struct ggml_tensor *op);

// --- events --------------------------------------------------------------------------------------

// An event of the device, which the caller frees; NULL where the device has none. [any-thread]
GGML_API ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device);

// Ends an event; NULL does nothing. [stream]
GGML_API void ggml_backend_event_free(ggml_backend_event_t event);

// Marks the work queued on the stream so far; recording again replaces the mark. [stream]
GGML_API void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend);

// Blocks until the marked work is done; at once if never recorded. [stream]
GGML_API void ggml_backend_event_synchronize(ggml_backend_event_t event);

// Makes later work of the stream wait for the mark, without blocking the caller. [stream]
GGML_API void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

// --- devices -------------------------------------------------------------------------------------

// Devices are static objects: they live until their plugin is unloaded.

// Short name ("CUDA0") and what a person calls it, constant; "NULL" for NULL. [any-thread]
GGML_API const char *ggml_backend_dev_name(ggml_backend_dev_t device);
GGML_API const char *ggml_backend_dev_description(ggml_backend_dev_t device);

// Bytes of memory, free <= total; both 0 where nothing is reported. Either output may be NULL.
// [any-thread]
GGML_API void ggml_backend_dev_memory(ggml_backend_dev_t device, size_t *free, size_t *total);

// Kind of device; CPU for NULL. [any-thread]
GGML_API enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device);

// Fills *props, which is zeroed first; its strings belong to the device. [any-thread]
GGML_API void ggml_backend_dev_get_props(ggml_backend_dev_t device,
                                         struct ggml_backend_dev_props *props);

// The backend that offers it; NULL for devices made by ggml_backend_meta_device(). [any-thread]
GGML_API ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device);

// A new stream, which the caller frees; params is in the backend's own syntax, or NULL. NULL on
// failure. May take long. [any-thread]
GGML_API ggml_backend_t ggml_backend_dev_init(ggml_backend_dev_t device, const char *params);

// Preferred memory of the device; pinned host memory for fast transfers, or NULL if it has none.
// [any-thread]
GGML_API ggml_backend_buffer_type_t ggml_backend_dev_buffer_type(ggml_backend_dev_t device);
GGML_API ggml_backend_buffer_type_t ggml_backend_dev_host_buffer_type(ggml_backend_dev_t device);

// A buffer over host memory that stays the caller's and must outlive it, for tensors of at most
// max_tensor_size bytes. NULL on failure or where caps.buffer_from_host_ptr is false. [any-thread]
GGML_API ggml_backend_buffer_t ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_t device,
                                                                     void *ptr, size_t size,
                                                                     size_t max_tensor_size);

// Whether the device computes this node. Tensors need no buffers. False for error tensors.
// [any-thread]
GGML_API bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op);

// Whether the device can use tensors in that memory. [any-thread]
GGML_API bool ggml_backend_dev_supports_buft(ggml_backend_dev_t device,
                                             ggml_backend_buffer_type_t buft);

// Whether it pays to copy the node's operands to the device for it. [any-thread]
GGML_API bool ggml_backend_dev_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op);

// --- registry ------------------------------------------------------------------------------------

// A backend (ggml_backend_reg_t) is what a plugin registers. Reads are lock-free; loading and
// unloading are serialised. Details of a failure: ggml-host.h.

// Name, constant, NULL for NULL; number of devices; device by index, NULL out of range.
// [any-thread]
GGML_API const char *ggml_backend_reg_name(ggml_backend_reg_t reg);
GGML_API size_t ggml_backend_reg_dev_count(ggml_backend_reg_t reg);
GGML_API ggml_backend_dev_t ggml_backend_reg_dev_get(ggml_backend_reg_t reg, size_t index);

// A function of the backend by name, to be cast to its type, or NULL without a message.
// [any-thread]
GGML_API void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t reg, const char *name);

// Adds a backend or a device that is linked into the application; static objects. NULL and
// repetitions are ignored. [any-thread]
GGML_API void ggml_backend_register(ggml_backend_reg_t reg);
GGML_API void ggml_backend_device_register(ggml_backend_dev_t device);

// Number of backends; backend by index, NULL out of range. The first call loads built-in ones.
// [any-thread]
GGML_API size_t ggml_backend_reg_count(void);
GGML_API ggml_backend_reg_t ggml_backend_reg_get(size_t index);

// Number of devices; device by index, NULL out of range. Order: discrete GPUs, integrated ones,
// accelerators, CPU. [any-thread]
GGML_API size_t ggml_backend_dev_count(void);
GGML_API ggml_backend_dev_t ggml_backend_dev_get(size_t index);

// The first of that name, ASCII case ignored, or NULL without a message. [any-thread]
GGML_API ggml_backend_reg_t ggml_backend_reg_by_name(const char *name);
GGML_API ggml_backend_dev_t ggml_backend_dev_by_name(const char *name);

// The first device of that type, or NULL without a message; of CPU devices those that work in host
// memory come first. [any-thread]
GGML_API ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type);

// A stream on the first device of that name or type, as ggml_backend_dev_init(). [any-thread]
GGML_API ggml_backend_t ggml_backend_init_by_name(const char *name, const char *params);
GGML_API ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type,
                                                  const char *params);

// A stream on the best device: GPU, else integrated GPU, else CPU. NULL if none starts.
// [any-thread]
GGML_API ggml_backend_t ggml_backend_init_best(void);

// Loads one plugin by path; NULL on failure. As ggml_plugin_load(). Blocks. [any-thread]
GGML_API ggml_backend_reg_t ggml_backend_load(const char *path);

// Unloads a plugin; leaves a message (BUSY) and does nothing while objects of it live. As
// ggml_plugin_unload(). [any-thread]
GGML_API void ggml_backend_unload(ggml_backend_reg_t reg);

// Loads every plugin along the search path, or in one directory (NULL: the search path). As
// ggml_plugin_load_all(). Blocks; idempotent. [any-thread]
GGML_API void ggml_backend_load_all(void);
GGML_API void ggml_backend_load_all_from_path(const char *dir_path);

// --- scheduler -----------------------------------------------------------------------------------

// Runs one graph on several streams: assigns each node, cuts the graph into splits, copies what a
// split can't read in place, allocates and runs. It rewrites src[] of the graph's nodes: a graph is
// good for one split. Sequence: reserve (worst case), then per graph: reset, alloc_graph, set the
// inputs, graph_compute.

// streams in order of preference, the last on a CPU device; bufts: memory of each, or NULL for the
// defaults. graph_size: nodes and leafs of the largest graph. parallel: several copies of inputs
// for pipelining. op_offload: let other devices take operations whose weights are in host memory.
// NULL on failure. The streams stay the caller's, who may free them before the scheduler: from then
// on it can only be freed. A stream may be listed twice. [any-thread]
GGML_API ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends,
                                                     ggml_backend_buffer_type_t *bufts,
                                                     int n_backends, size_t graph_size,
                                                     bool parallel, bool op_offload);

// Ends it with its buffers; NULL does nothing. [stream]
GGML_API void ggml_backend_sched_free(ggml_backend_sched_t sched);

// Sizes of the buffers that a graph needs, one per stream, without allocating. [stream]
GGML_API void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched,
                                              struct ggml_cgraph *measure_graph, size_t *sizes);

// Allocates for a graph of the largest size, then resets; false when memory runs out. Blocks.
// [stream]
GGML_API bool ggml_backend_sched_reserve(ggml_backend_sched_t sched,
                                         struct ggml_cgraph *measure_graph);

// Number of streams; stream by index, NULL out of range. [stream]
GGML_API int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched);
GGML_API ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i);

// Of the last split: number of splits, and copies per input. [stream]
GGML_API int ggml_backend_sched_get_n_splits(ggml_backend_sched_t sched);
GGML_API int ggml_backend_sched_get_n_copies(ggml_backend_sched_t sched);

// Memory type, and bytes allocated, for a stream; NULL and 0 for a foreign one. [stream]
GGML_API ggml_backend_buffer_type_t ggml_backend_sched_get_buffer_type(ggml_backend_sched_t sched,
                                                                       ggml_backend_t backend);
GGML_API size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t sched,
                                                   ggml_backend_t backend);

// Pins a node to a stream until the next reset. [stream]
GGML_API void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t sched,
                                                    struct ggml_tensor *node,
                                                    ggml_backend_t backend);

// Where a node runs, or NULL if that is not known. [stream]
GGML_API ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t sched,
                                                              struct ggml_tensor *node);

// Assigns and splits only; a node that no stream supports puts the graph in error. [stream]
GGML_API void ggml_backend_sched_split_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

// Splits and allocates; false on failure, the scheduler then needs a reset. [stream]
GGML_API bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

// Computes the allocated graph, allocating it first if there is none; ALLOC_FAILED, or the status
// of the first split that failed. Waits for completion; the _async form does not. [stream]
GGML_API enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched,
                                                           struct ggml_cgraph *graph);
GGML_API enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched,
                                                                 struct ggml_cgraph *graph);

// Waits for every stream. [stream]
GGML_API void ggml_backend_sched_synchronize(ggml_backend_sched_t sched);

// Forgets the graph, its assignments and pins; its tensors' addresses become invalid. [stream]
GGML_API void ggml_backend_sched_reset(ggml_backend_sched_t sched);

// Sets what is called around nodes during a compute: with `ask` it says whether it wants the node's
// data, then it is called again with the data there, and false cancels. NULL: none. [stream]
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
// be made anew, which waits for all streams: whether streams of its nodes changed since the last
// graph of as many nodes, and whether their number did. NULL: none. [stream]
GGML_API void ggml_backend_sched_set_realloc_callback(ggml_backend_sched_t sched,
                                                      ggml_backend_sched_realloc_callback callback,
                                                      void *user_data);

// --- several devices as one ----------------------------------------------------------------------

// "0".."3", "MIRRORED", "PARTIAL", "NONE", else "UNKNOWN"; constant. [any-thread]
GGML_API const char *
ggml_backend_meta_split_axis_name(enum ggml_backend_meta_split_axis split_axis);

// A device that spreads tensors over n_devs (1..16) others as the callback says, and computes on
// all of them. The same arguments answer the same device; it lives for the process and is not
// registered. NULL on failure. [any-thread]
GGML_API ggml_backend_dev_t ggml_backend_meta_device(
    ggml_backend_dev_t *devs, size_t n_devs, ggml_backend_meta_get_split_state_t get_split_state,
    void *get_split_state_ud);

// --- comparing devices ---------------------------------------------------------------------------

// A copy of a placed graph with all data in a new buffer of the stream's device; all members NULL
// on failure. Freed by ggml_backend_graph_copy_free(), which accepts that. Blocks. [stream]
GGML_API struct ggml_backend_graph_copy ggml_backend_graph_copy(ggml_backend_t backend,
                                                                struct ggml_cgraph *graph);
GGML_API void ggml_backend_graph_copy_free(struct ggml_backend_graph_copy copy);

// Computes the graph on both streams and hands each pair of results to the callback, node by node;
// its false stops. With test_nodes: whole graphs, and only those nodes. False when the copy or a
// compute failed. Blocks. [stream]
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
