// SPDX-License-Identifier: MIT
// The devices that the plugin offers. Listing them asks the driver; the logical device is made when
// the first buffer or stream is.
#ifndef VK_DEVICE_H
#define VK_DEVICE_H

#include "device/context.h"
#include "gpu/base/device.h"

struct vk_device {
    struct gpu_device base; // first; its details are filled by vk_details_fill()
    struct ggml_backend_buffer_type import_buft; // memory of the caller
    VkPhysicalDevice physical;
    struct vk_probe probe;
    struct vk_features features;
    bool named; // in GGML_DEVICES
    char import_name[48];
    pthread_mutex_t mutex;      // of the next
    struct vk_context *context; // NULL until it is needed
};

extern const struct ggml_device_table vk_device_table;

// What the probe says for people and programs.
void vk_details_fill(struct gpu_details *out_details, const struct vk_probe *probe);
// The backend with all devices, or NULL after telling why. [init]
ggml_backend_reg_t vk_reg_start(void);
// Frees every device and the instance. [init]
void vk_reg_stop(void);
// The device behind the host's object. [any-thread]
struct vk_device *vk_device_of(ggml_backend_dev_t device);
// Its context, made if need be; NULL after telling why. [any-thread]
struct vk_context *vk_device_context(struct vk_device *device);

#endif
