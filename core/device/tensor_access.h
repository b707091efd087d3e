// SPDX-License-Identifier: MIT
// Bounds of transfers between a tensor and host memory.
#ifndef GGML_DEVICE_TENSOR_ACCESS_H
#define GGML_DEVICE_TENSOR_ACCESS_H

#include "device/check.h"

// n_copies pieces of `size` bytes: piece i is at offset + i * stride_tensor bytes of the tensor's
// data and at i * stride_data bytes of the host memory.
struct tensor_pieces {
    size_t offset;
    size_t size;
    size_t n_copies;
    size_t stride_tensor;
    size_t stride_data;
};

// Bytes whose multiples can be transferred; SIZE_MAX: only the whole tensor. [any-thread]
size_t tensor_access_unit(const struct ggml_tensor *tensor);

// The buffer to go through. NULL: there is nothing to transfer, or it is refused, which is
// recorded. `data` is the host memory. [stream]
ggml_backend_buffer_t tensor_access_buffer(const char *function, const struct ggml_tensor *tensor,
                                           const void *data, const struct tensor_pieces *pieces);

#endif
