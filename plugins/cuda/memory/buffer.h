// SPDX-License-Identifier: MIT
// Buffers in the device's memory, and in pinned memory of the host.
#ifndef CUDA_MEMORY_BUFFER_H
#define CUDA_MEMORY_BUFFER_H

#include "device/device.h"

// Memory of the host, or device memory: a piece of the pool, memory of the driver's behind
// addresses of its own, memory of another interface, or an allocation.
struct cuda_buffer {
    struct cuda_context *context;
    CUdeviceptr base; // of device memory, which tensor->data has addresses of
    void *host;       // of pinned memory
    bool is_callers;  // host is the caller's, and registered
    struct cuda_piece *piece;
    bool has_memory; // the next, which lies in the range
    CUmemGenericAllocationHandle memory;
    struct cuda_range range;
    CUexternalMemory external;
    size_t budgeted; // bytes of an allocation, or of the range
    size_t size;
    uint64_t id; // of this buffer alone, as addresses come again; above 0
};

// A buffer without memory; cuda_buffer_release() ends it. NULL: no memory of the host. [any-thread]
struct cuda_buffer *cuda_buffer_new(struct cuda_context *context, size_t size);
// Gives back the memory that the buffer has, after the work that was queued, and the buffer.
// [any-thread]
void cuda_buffer_release(struct cuda_buffer *buffer);
// Makes the handle of a buffer of device memory, which owns it from now on; after a failure the
// buffer is released. [any-thread]
int32_t cuda_buffer_wrap(struct cuda_device *device, struct cuda_buffer *buffer,
                         ggml_backend_buffer_t *out_buffer);
// The buffer of device memory behind a handle, or NULL. [any-thread]
struct cuda_buffer *cuda_buffer_from(ggml_backend_buffer_t handle);
// A buffer over memory of the caller, which is registered with the driver: copies from and to it
// are as those of pinned memory. UNSUPPORTED without GGML_CUDA_REGISTER_HOST. [any-thread]
int32_t cuda_buffer_from_host(struct cuda_device *device, void *ptr, size_t size,
                              ggml_backend_buffer_t *out_buffer);
// Makes the device's handles and names, its buffer types among them. [init]
void cuda_buffer_types_init(struct cuda_device *device, ggml_backend_reg_t reg, int number);
// The buffer of this plugin's device memory that the tensor lies in, or NULL. [any-thread]
struct cuda_buffer *cuda_buffer_of(const struct ggml_tensor *tensor);
// Queues a copy, perhaps between devices, in a stream of the context that is current. Ranges don't
// overlap. [any-thread]
CUresult cuda_copy(CUdeviceptr to, const struct cuda_context *context_to, CUdeviceptr from,
                   const struct cuda_context *context_from, size_t size, CUstream stream);

#endif
