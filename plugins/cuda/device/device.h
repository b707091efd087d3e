// SPDX-License-Identifier: MIT
// A device of the plugin.
#ifndef CUDA_DEVICE_DEVICE_H
#define CUDA_DEVICE_DEVICE_H

#include "device/context.h"
#include "gpu/base/device.h"

struct cuda_device {
    struct gpu_device base; // first
    CUdevice handle;
    size_t memory; // bytes
    bool integrated;
    bool registers;               // the caller's memory, since GGML_CUDA_REGISTER_HOST asks for it
    bool unpinned;                // GGML_CUDA_NO_PINNED: it has no memory of the host
    pthread_mutex_t mutex;        // of the next
    struct cuda_context *context; // NULL: not made yet
};

extern const struct ggml_device_table cuda_device_table;

// The device behind a handle, NULL if it is none of this plugin. [any-thread]
struct cuda_device *cuda_device_of(ggml_backend_dev_t device);
// Its context, which is made at the first call. NULL after set_error. [any-thread]
struct cuda_context *cuda_device_context(struct cuda_device *device);

// Finds the devices. NULL after set_error. [init]
ggml_backend_reg_t cuda_reg_start(void);
void cuda_reg_stop(void);
// What cuda_reg_start() returns. [any-thread]
ggml_backend_reg_t cuda_reg(void);

#endif
