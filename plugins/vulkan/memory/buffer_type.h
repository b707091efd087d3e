// SPDX-License-Identifier: MIT
// Memory as the host sees it: buffers in which tensors lie.
#ifndef GVK_BUFFER_TYPE_H
#define GVK_BUFFER_TYPE_H

#include "device/device.h"
#include "memory/buffer.h"

struct gvk_place {
    struct gvk_buffer *buffer; // NULL: not in memory of this plugin
    uint64_t offset;
};

// Makes the device's handles and names, its buffer types among them. [init]
void gvk_buffer_types_init(struct gvk_device *device, ggml_backend_reg_t reg, int number);
// Where a tensor lies. [any-thread]
struct gvk_place gvk_place_of(const struct ggml_tensor *tensor);
// A number that stands for the memory that the tensor lies in, 0: not of this plugin. [any-thread]
uint64_t gvk_place_id(const struct ggml_tensor *tensor);
// Wraps a buffer of the device's own memory for the host, and frees it if that fails. [any-thread]
int32_t gvk_buffer_wrap(struct gvk_device *device, struct gvk_buffer *buffer, size_t size,
                        ggml_backend_buffer_t *out_buffer);
// What is behind the host's object; NULL: another plugin's. [any-thread]
struct gvk_buffer *gvk_buffer_of(ggml_backend_buffer_t handle);
// Buffer over the caller's memory, NULL after telling why. [any-thread]
ggml_backend_buffer_t gvk_buffer_from_host(struct gvk_device *device, void *ptr, size_t size);

#endif
