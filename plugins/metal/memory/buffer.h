// SPDX-License-Identifier: MIT
// Buffers of a device. Where host and device share memory: memory of Metal's, and memory of the
// application's; a tensor's data is where the host sees it. Where the device has memory of its own:
// private memory; a tensor's data is the device's address.
#ifndef METAL_MEMORY_BUFFER_H
#define METAL_MEMORY_BUFFER_H

#include "device/device.h"

// Windows of memory of the application's, each a buffer of Metal's: one is at most as large as the
// device's largest buffer.
enum { METAL_MAX_WINDOWS = 32 };

struct metal_window {
    mtl_id handle;
    size_t begin, size; // bytes of the buffer that it shows
    char *contents;     // where the host sees its first byte; NULL: nowhere
    uint64_t address;   // where the device sees it
};

struct metal_buffer {
    struct metal_context *context;
    uint64_t id;   // never used again
    uint64_t base; // what tensors' data counts from
    size_t size;
    int n_windows;
    struct metal_window windows[METAL_MAX_WINDOWS]; // by their beginnings; they may overlap
};

// Where a tensor lies.
struct metal_place {
    struct metal_context *context;
    mtl_id handle;
    size_t offset;    // in the buffer of Metal's
    char *contents;   // where the host sees it; NULL: nowhere
    uint64_t address; // where the device sees it
    bool is_aliased;  // other buffers of Metal's may show the same bytes
};

void metal_buffer_types_init(struct metal_device *device);
// Finds the window that shows the whole tensor. False: it does not lie in a buffer of this
// plugin's, or no window shows all of it. O(windows). [any-thread]
bool metal_place_of(const struct ggml_tensor *tensor, struct metal_place *out_place);
// The buffers of Metal's that show some of the tensor, one after the other from *i = 0 on; NULL:
// there is no other. Metal orders work by buffers, and does not know which share memory. The tensor
// has a place. [any-thread]
mtl_id metal_next_window(const struct ggml_tensor *tensor, int *i);
// A number that stands for the tensor's buffer and is never used again; 0: none of this plugin's.
// [any-thread]
uint64_t metal_buffer_id(const struct ggml_tensor *tensor);
// Entry of devices: memory that begins and ends with a page, without a copy.
int32_t metal_buffer_from_host(ggml_backend_dev_t device, void *memory, size_t size,
                               size_t max_tensor_size, ggml_backend_buffer_t *out_buffer);

#endif
