// SPDX-License-Identifier: MIT
// The meta device: several devices that look like one.
//
// Every tensor in a meta buffer has a record with its split state and one slice tensor per device.
// States of tensors without an operation come from the application; all others are derived, and
// what can't be derived is computed on every device from gathered operands (a fallback).
#ifndef GGML_META_META_H
#define GGML_META_META_H

#include "base/status.h"
#include "device/stream.h"
#include "ggml-backend-impl.h"
#include "ggml-ext-comm.h"
#include "ggml-impl.h"

enum {
    META_MAX_SEGMENTS = 16,
    META_MAX_DEVICES = GGML_BACKEND_META_MAX_DEVICES,
};

typedef struct ggml_backend_meta_split_state meta_state;

// --- states and layouts --------------------------------------------------------------------------

// Type, extents and strides of a tensor, and where it begins in its root.
struct meta_layout {
    enum ggml_type type;
    int64_t ne[GGML_MAX_DIMS];
    size_t nb[GGML_MAX_DIMS];
    size_t offset;
};

static inline bool meta_is_axis(const meta_state *state) {
    return (int)state->axis >= 0 && (int)state->axis < GGML_MAX_DIMS;
}
meta_state meta_state_plain(enum ggml_backend_meta_split_axis axis);
// One segment with these shares.
meta_state meta_state_axis(int axis, const int64_t *shares, size_t n);
// Elements of device j along the axis.
int64_t meta_share(const meta_state *state, size_t n, size_t j);
// Same axis and the same pieces in the same order.
bool meta_state_equal(const meta_state *a, const meta_state *b, size_t n);
// Whether each device's elements are one piece: they can be cut out of a copy with a view.
bool meta_is_plain_cut(const meta_state *state);
// Whether the state fits a tensor: sums, blocks, segments.
bool meta_state_fits(const meta_state *state, const struct ggml_tensor *tensor, size_t n);

struct meta_layout meta_layout_of(const struct ggml_tensor *tensor);
// The same extents without gaps.
struct meta_layout meta_layout_packed(enum ggml_type type, const int64_t *ne);
// How a view of a split root, which is without gaps, is split; false if it cuts through devices.
bool meta_view_state(const struct meta_layout *root, const meta_state *root_state,
                     const struct meta_layout *view, size_t n, meta_state *out_state);
// The view's slice on device j, relative to the root's slice.
struct meta_layout meta_view_slice(const struct meta_layout *root, const meta_state *root_state,
                                   const struct meta_layout *view, const meta_state *view_state,
                                   size_t n, size_t j);
// The slice of a root on device j.
struct meta_layout meta_root_slice(const struct meta_layout *root, const meta_state *state,
                                   size_t n, size_t j);

// --- derivation ----------------------------------------------------------------------------------

// What is to be known of an operand.
struct meta_operand {
    const struct ggml_tensor *tensor; // NULL: none
    meta_state state;                 // PARTIAL ones count as MIRRORED, they are reduced before
    int cut_axis;   // out: >= 0: a mirrored operand of which each device uses a cut
    meta_state cut; // out: along that axis
};

// State of the result; false: there is no way but the fallback. [any-thread]
bool meta_derive(const struct ggml_tensor *node, struct meta_operand *operands, size_t n,
                 meta_state *out_state);
// Whether the node, applied to partial sums, gives the partial sums of its result; bit k of
// `partial` says that operand k is one. [any-thread]
bool meta_is_linear(const struct ggml_tensor *node, unsigned partial);

// --- device --------------------------------------------------------------------------------------

struct meta_device {
    struct ggml_backend_device base;
    struct ggml_backend_buffer_type buft;
    size_t n;
    ggml_backend_dev_t devices[META_MAX_DEVICES];
    ggml_backend_meta_get_split_state_t get_split_state;
    void *user_data;
    struct meta_device *next;
    char *name;
};

// NULL if it is another one.
struct meta_device *meta_buft_device(ggml_backend_buffer_type_t buft);
ggml_backend_t meta_stream_new(struct meta_device *device, const char *params);

// --- records and buffers -------------------------------------------------------------------------

// What a tensor was when its record was last asked for: another one may be at its address since.
struct meta_identity {
    enum ggml_op op;
    struct meta_layout layout;
    const struct ggml_tensor *view_src;
    const void *data; // of the root
};

// What is known of a tensor in a meta buffer. It is derived once and kept until the buffer or the
// tensor changes.
struct meta_record {
    const struct ggml_tensor *tensor;
    struct meta_identity identity;
    uint64_t epoch; // of the buffer when it was last used
    uint64_t used;  // when that was, in sections under the lock
    int32_t n_refs; // the table's and those of plans and transfers
    bool is_resolved;
    bool is_fallback;
    meta_state state;           // UNKNOWN for a view that cuts through devices: it has no slices
    struct meta_record *owner;  // of the static memory that its slices have; NULL: not static
    bool reads_partial;         // of static memory: right only where sums may be partial
    struct ggml_tensor *slices; // one per device; without data until it is placed
    struct ggml_tensor *cuts[GGML_MAX_SRC]; // one per device, or NULL
    // While a graph is planned:
    bool is_partial;
    uint32_t zero_devices; // bit j: the partial sum of device j is zero and not written
    int32_t n_uses;
};

struct meta_buffer {
    struct meta_device *device;
    bool is_static;
    bool is_placed; // static memory: its tensors have their slices
    ggml_backend_buffer_t *members[META_MAX_DEVICES]; // static memory may need several per device
    size_t n_members[META_MAX_DEVICES];               // allocated and used
    char *bases[META_MAX_DEVICES];                    // where META_BASE is; NULL for static memory
    uint64_t epoch;
    struct meta_record **slots; // by hash of the tensor's address
    size_t n_slots, n_records;
    struct meta_record **owners; // of static memory, sorted by their placeholder addresses
    size_t n_owners;
    int32_t owners_capacity;
};

// First address that tensors in meta buffers have; it means nothing.
#define META_BASE ((char *)((uintptr_t)1 << (8 * sizeof(void *) - 4)))

// Changes with every change to what records say: a plan made before may be out of date.
uint64_t meta_generation(void);
// Records are shared by all streams that compute with a buffer, in whatever threads. All that reads
// or changes them is done under one lock, which a thread may take again while it has it: the
// application's callback may access tensors.
void meta_lock(void);
void meta_unlock(void);

// NULL if the buffer is another one.
struct meta_buffer *meta_buffer_of(ggml_backend_buffer_t buffer);
// Buffer whose memory the tensor is in, or NULL if that is no meta buffer.
struct meta_buffer *meta_buffer_with(const struct ggml_tensor *tensor);
int32_t meta_buffer_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer);
// Memory for all tensors of a context, each device with its slices only.
ggml_backend_buffer_t meta_buffer_alloc_ctx(struct ggml_context *ctx,
                                            ggml_backend_buffer_type_t buft);

// Of its members; buffers of others are ignored.
void meta_buffer_set_usage(ggml_backend_buffer_t handle, enum ggml_backend_buffer_usage usage);

// The record, made if it is new; NULL after a failure or for a tensor in other memory. It stays
// until the lock is released, with a reference until that is returned. [under the lock]
struct meta_record *meta_record_get(const struct ggml_tensor *tensor);
void meta_record_ref(struct meta_record *record);
void meta_record_unref(struct meta_record *record); // NULL does nothing
// Static memory is the record's, until the buffer is freed; called in the order of addresses. False
// after the error was set. [under the lock]
bool meta_record_own(struct meta_buffer *buffer, struct meta_record *record);
// All owners have their memory: tensors take it from them, and what else is known is forgotten.
// [under the lock]
void meta_records_settle(struct meta_buffer *buffer);
void meta_records_free(struct meta_buffer *buffer);
// Forgets what was derived from tensors that are gone. [under the lock]
void meta_records_expire(struct meta_buffer *buffer);
// The record with state and slices, operands first; NULL after a failure. [under the lock]
struct meta_record *meta_resolve(const struct ggml_tensor *tensor);
// Resolves the record again as a fallback. The operands are resolved.
bool meta_resolve_fallback(struct meta_record *record);

// What the tensor is a view of, or itself. One step: records belong to the tensor that view_src
// names, and a slice of a view is a view of that tensor's slice.
static inline const struct ggml_tensor *meta_root(const struct ggml_tensor *tensor) {
    return tensor->view_src ? tensor->view_src : tensor;
}

// --- data ----------------------------------------------------------------------------------------

// Copies a range of bytes; streams NULL: blocks. False after a failure.
bool meta_set(ggml_backend_t *streams, struct ggml_tensor *tensor, const void *data, size_t offset,
              size_t size);
bool meta_get(ggml_backend_t *streams, const struct ggml_tensor *tensor, void *data, size_t offset,
              size_t size);

// --- streams -------------------------------------------------------------------------------------

struct meta_stream {
    struct ggml_backend base;
    struct meta_device *device;
    char *name;
    ggml_backend_t streams[META_MAX_DEVICES];
    ggml_backend_event_t events[META_MAX_DEVICES]; // NULL: the device has none
    const struct ggml_extension_comm *comm;        // of the devices' plugin; NULL: the generic way
    ggml_comm_group_t group;                       // of all streams, or NULL
    struct meta_plan *plan;                        // of the last graph, or NULL
};

// What is to be done for a graph, in order.
struct meta_plan;
enum ggml_status meta_plan_new(struct meta_stream *stream, const struct ggml_graph *graph,
                               struct meta_plan **out_plan);
bool meta_plan_is_for(const struct meta_plan *plan, const struct ggml_graph *graph);
enum ggml_status meta_plan_run(struct meta_stream *stream, struct meta_plan *plan);
void meta_plan_free(struct meta_plan *plan); // NULL does nothing

// Tensors for an all-reduce, one per device, and room for one received copy on each.
struct meta_reduction {
    struct ggml_tensor *parts[META_MAX_DEVICES];
    struct ggml_tensor *received; // one per device
    struct ggml_tensor *sums;     // one per device: part += received
};

// A group of the streams, where one plugin has all the devices and offers "ggml.comm".
void meta_group_begin(struct meta_stream *stream);
void meta_group_end(struct meta_stream *stream);

// Sums the parts in place on all devices; ones without the flag COMPUTE count as zero.
enum ggml_status meta_reduce(struct meta_stream *stream, struct meta_reduction *reduction);

#endif
