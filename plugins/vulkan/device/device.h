// SPDX-License-Identifier: MIT
// The devices that the plugin offers. Listing them asks the driver; the logical device is made when
// the first buffer or stream is.
#ifndef VK_DEVICE_H
#define VK_DEVICE_H

#include "device/context.h"

struct vk_details {
    int n;
    char texts[8][GGML_DEVICE_INFO_MAX_TEXT];
    struct ggml_backend_feature list[9]; // ends with one without a name
};

struct vk_device {
    struct ggml_backend_device base;
    struct ggml_backend_buffer_type buft;      // the device's memory
    struct ggml_backend_buffer_type host_buft; // memory of the host that it copies fast from and to
    struct ggml_backend_buffer_type import_buft; // memory of the caller
    VkPhysicalDevice physical;
    struct vk_probe probe;
    struct vk_features features;
    bool named; // in GGML_DEVICES
    char name[32], host_name[32], import_name[48];
    char description[1024];
    char id[64];
    struct vk_details details;
    pthread_mutex_t mutex;
    struct vk_context *context; // NULL until it is needed
};

// What the probe says for people and programs.
void vk_details_fill(struct vk_details *out_details, const struct vk_probe *probe);
// The backend with all devices, or NULL after telling why. [init]
ggml_backend_reg_t vk_reg_start(void);
// Frees every device and the instance. [init]
void vk_reg_stop(void);
// The device behind the host's object. [any-thread]
struct vk_device *vk_device_of(ggml_backend_dev_t device);
// Its context, made if need be; NULL after telling why. [any-thread]
struct vk_context *vk_device_context(struct vk_device *device);

#endif
