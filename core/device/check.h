// SPDX-License-Identifier: MIT
// Helpers of the wrappers in this folder: bad arguments are refused with a message that names the
// function and the object. Nothing here records an error unless its comment says so.
#ifndef GGML_DEVICE_CHECK_H
#define GGML_DEVICE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"

// Name of an object in messages; never NULL. [any-thread]
const char *device_label(ggml_backend_dev_t device);
const char *device_buft_label(ggml_backend_buffer_type_t buft);
const char *device_stream_label(ggml_backend_t backend);

// Records "function: the WHAT is NULL"; always false.
bool device_refuse_null(const char *function, const char *what);
// Whether `object` isn't NULL; otherwise records that.
static inline bool device_require_arg(const void *object, const char *function, const char *what) {
    return object || device_refuse_null(function, what);
}
// Records that the buffer type is NULL or none of this library's; always false.
bool device_refuse_buft(const char *function, ggml_backend_buffer_type_t buft);
// Whether it is a buffer type; otherwise records what it is instead. One that a program made by
// ggml's headers begins with a function, whose code is no head of a table.
static inline bool device_require_buft(ggml_backend_buffer_type_t buft, const char *function) {
    enum { LEAST = offsetof(struct ggml_buffer_type_table, get_max_size), MOST = 4096 };
    const struct ggml_buffer_type_table *table = buft ? buft->table : NULL;
    return (table && table->reserved0 == 0 && table->size >= LEAST && table->size <= MOST) ||
           device_refuse_buft(function, buft);
}
// Whether an optional entry exists; otherwise records that the device or buffer type lacks it.
bool device_offers(bool present, const char *function, const char *label, const char *entry);

// Records the failure unless the callee left its own message: `errors_before` is ggml_fail_count()
// from before the call.
void device_fail_default(unsigned long errors_before, enum ggml_host_status status,
                         const char *format, ...) GGML_ATTRIBUTE_FORMAT(3, 4);

// Converts the status that an entry returned: records failures, and turns unknown numbers into
// GGML_HOST_BAD_PLUGIN. `errors_before` as above.
enum ggml_host_status device_check_status(int32_t status, unsigned long errors_before,
                                          const char *function, const char *label);

// As device_check_status() for an entry that was to make an object; the message is the caller's.
void device_failed_to(int32_t status, unsigned long errors_before, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(3, 4);

// The status of ggml's API for a host status.
enum ggml_status device_graph_status(enum ggml_host_status status);

// Ends what host_live_add(device) began before a plugin was asked for an object. `slot` is the
// member `host` of the object (the device that it was counted for as alive, or NULL), or NULL if
// none was made. An object that was counted already, because one wrapper called another, is counted
// once.
void device_live_transfer(void **slot, ggml_backend_dev_t device);

// Whether a buffer type has a table of this contract. Nothing is recorded.
static inline bool device_buft_usable(const struct ggml_backend_buffer_type *buft) {
    return buft && buft->table &&
           buft->table->size >= offsetof(struct ggml_buffer_type_table, reserved);
}

// Whether a buffer that a plugin has made can be called; records that it can't.
bool device_buffer_usable(const char *function, const char *label, ggml_backend_buffer_t buffer);

// Whether the buffer belongs to a device that is made of several ones.
bool device_buft_is_meta(ggml_backend_buffer_type_t buft);

// Functions of devices that are made of several devices; NULL until the first one is made.
// [any-thread]
struct device_meta_functions {
    // Places all tensors of a context: a buffer, or NULL after a failure.
    ggml_backend_buffer_t (*ctx_alloc)(struct ggml_context *ctx, ggml_backend_buffer_type_t buft);
    // Passes the usage on to the members of the device's buffer.
    void (*set_usage)(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage);
};
const struct device_meta_functions *device_meta_functions(void);
void device_set_meta_functions(const struct device_meta_functions *functions);

// Whether all of the tensor's bytes are those of the tensor that it is a view of, if any: builders
// let views reach beyond the end by their strides, since they may be narrowed by other views.
bool device_is_inside(const struct ggml_tensor *tensor);

// Whether the graph is neither NULL nor in error and lists its nodes; records why not. [any-thread]
bool device_graph_whole(const char *function, const struct ggml_cgraph *graph);
// Whether a device may get the nodes: no node or source is in error, without data, or reaches
// beyond its tensor or buffer. Records why not. needs_buffers: the device can't address plain host
// memory. [any-thread]
bool device_graph_usable(const char *function, const char *label, bool needs_buffers,
                         const struct ggml_graph *graph);

// Address range of the buffer that was looked up last.
struct device_host_range {
    ggml_backend_buffer_t buffer;
    uintptr_t begin, end; // 0 and 0: it is not host memory
};

// Whether the tensor's bytes are within its buffer, where that is host memory: the application may
// have changed extents, strides or data. A tensor without a buffer, or in device memory, passes.
// Keeps the buffer's range for the next tensor of the same buffer.
bool device_is_in_buffer(const struct ggml_tensor *tensor, struct device_host_range *range);

// The buffer with the tensor's bytes, or NULL; a view may be uninitialised.
static inline ggml_backend_buffer_t device_tensor_buffer(const struct ggml_tensor *tensor) {
    return tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
}

#endif
