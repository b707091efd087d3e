// SPDX-License-Identifier: MIT
// A device of the plugin.
#ifndef METAL_DEVICE_DEVICE_H
#define METAL_DEVICE_DEVICE_H

#include "device/context.h"

enum { METAL_MAX_DETAILS = 8 };

struct metal_device {
    struct ggml_backend_device base;
    struct ggml_backend_buffer_type buft;
    mtl_id handle; // the plugin's reference
    size_t memory, max_buffer;
    bool unified;
    char name[16], description[128], id[32];
    char texts[METAL_MAX_DETAILS][64];
    struct ggml_backend_feature details[METAL_MAX_DETAILS + 1];
    int n_details;
    pthread_mutex_t mutex;         // of the next
    struct metal_context *context; // NULL: not made yet
};

extern const struct ggml_device_table metal_device_table;

// The device behind a handle, NULL if it is none of this plugin. [any-thread]
struct metal_device *metal_device_of(ggml_backend_dev_t device);
// Its context, which is made at the first call. NULL after set_error. [any-thread]
struct metal_context *metal_device_context(struct metal_device *device);

// Bytes that may still be allocated: of what Metal recommends as the most, and of what the system
// leaves to the process. [any-thread]
size_t metal_device_room(const struct metal_device *device);

// Finds the devices. NULL after set_error. [init]
ggml_backend_reg_t metal_reg_start(void);
void metal_reg_stop(void);

#endif
