// SPDX-License-Identifier: MIT
// Buffers in the device's memory, and in pinned memory of the host.
#ifndef CUDA_MEMORY_BUFFER_H
#define CUDA_MEMORY_BUFFER_H

#include "device/device.h"

struct cuda_buffer {
    struct cuda_context *context;
    CUdeviceptr base; // of device memory, which tensor->data has addresses of
    void *host;       // of pinned memory
    size_t size;
    uint64_t id; // of this buffer alone, as addresses come again; above 0
};

// Makes the device's handles and names, its buffer types among them. [init]
void cuda_buffer_types_init(struct cuda_device *device, ggml_backend_reg_t reg, int number);
// The buffer of this plugin's device memory that the tensor lies in, or NULL. [any-thread]
struct cuda_buffer *cuda_buffer_of(const struct ggml_tensor *tensor);
// Queues a copy, perhaps between devices, in a stream of the context that is current. Ranges don't
// overlap. [any-thread]
CUresult cuda_copy(CUdeviceptr to, const struct cuda_context *context_to, CUdeviceptr from,
                   const struct cuda_context *context_from, size_t size, CUstream stream);

#endif
