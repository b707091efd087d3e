// SPDX-License-Identifier: MIT
// A device that another process computes.
#ifndef GGML_ISOLATE_DEVICE_H
#define GGML_ISOLATE_DEVICE_H

#include "ggml-backend-impl.h"
#include "isolate/channel.h"

struct isolated_device {
    struct ggml_backend_device base;
    struct ggml_backend_reg reg;
    struct ggml_backend_buffer_type buft;
    ggml_backend_dev_t original; // for what needs no driver; counted as in use
    ggml_backend_buffer_type_t original_buft;
    enum isolate_memory memory;
    bool is_of_plugin; // GGML_ISOLATE made it: it ends with its plugin, which it doesn't hold
    struct channel channel;
    atomic_size_t n_alive; // buffers and streams
    atomic_uint_least64_t next_id;
    // Of all graphs that were computed: how long their calls took, and how long the device was
    // busy, as the other process says.
    atomic_int_least64_t total_ns, device_ns;
    uint64_t generation; // with the lock held: raised when a buffer is freed, which ends all graphs
};

// The device if it is one, else NULL. [any-thread]
struct isolated_device *isolated_device_of(ggml_backend_dev_t device);
// Whether the node calls a function of the application, which no other process can.
bool isolated_calls_application(const struct ggml_tensor *node);
// Whether the tensor's padding extends it: that isn't transmitted.
bool isolated_is_extended(const struct ggml_tensor *tensor);

// --- memory

// Context of a buffer.
struct isolated_buffer {
    struct isolated_device *device;
    uint64_t id;
    bool attaches; // the device's init_tensor is called: tensor->extra is a number of that call
    uintptr_t n_owners; // with the lock held: tensors with memory of their own since the last reset
    bool has_tensors;   // with the lock held: any were placed since then
    atomic_bool is_behind; // shared memory, to which placings that nobody waited for may write yet
    struct shared_memory memory; // fd -1: addresses without memory, which stand for the device's
};

void isolated_buft_init(struct isolated_device *device);
// The context of the buffer that holds the tensor's bytes, NULL if it is none of this device's.
// [any-thread]
struct isolated_buffer *isolated_buffer_of(const struct isolated_device *device,
                                           const struct ggml_tensor *tensor);

// --- streams

ggml_backend_t isolated_stream_new(struct isolated_device *device, const char *params);

#endif
