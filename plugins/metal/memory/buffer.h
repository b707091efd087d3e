// SPDX-License-Identifier: MIT
// Buffers that the host and the device share. A tensor's data is an address of the device's.
#ifndef METAL_MEMORY_BUFFER_H
#define METAL_MEMORY_BUFFER_H

#include "device/device.h"

struct metal_buffer {
    struct metal_context *context;
    mtl_id handle;
    char *contents;   // where the host sees it
    uint64_t address; // where the device sees it
    size_t size;
};

void metal_buffer_types_init(struct metal_device *device);
// The buffer of this plugin's that the tensor lies in, or NULL. [any-thread]
struct metal_buffer *metal_buffer_of(const struct ggml_tensor *tensor);

#endif
