// SPDX-License-Identifier: MIT
// The devices that the plugin offers. Listing them asks the driver; the logical device is made when
// the first buffer or stream is.
#ifndef GVK_DEVICE_H
#define GVK_DEVICE_H

#include "device/context.h"
#include "gpu/base/device.h"

struct gvk_device {
    struct gpu_device base; // first; its details are filled by gvk_details_fill()
    struct ggml_backend_buffer_type import_buft; // memory of the caller
    VkPhysicalDevice physical;
    struct gvk_probe probe;
    struct gvk_features features;
    bool named; // in GGML_DEVICES
    char import_name[48];
    pthread_mutex_t mutex;       // of the next
    struct gvk_context *context; // NULL until it is needed
};

extern const struct ggml_device_table gvk_device_table;

// What the probe says for people and programs.
void gvk_details_fill(struct gpu_details *out_details, const struct gvk_probe *probe);
// The backend with all devices, or NULL after telling why. [init]
ggml_backend_reg_t gvk_reg_start(void);
// Frees every device and the instance. [init]
void gvk_reg_stop(void);
// The device behind the host's object. [any-thread]
struct gvk_device *gvk_device_of(ggml_backend_dev_t device);
// Its context, made if need be; NULL after telling why. [any-thread]
struct gvk_context *gvk_device_context(struct gvk_device *device);

#endif
