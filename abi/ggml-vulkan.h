// SPDX-License-Identifier: MIT
// ggml-vulkan.h: ggml's calls for Vulkan devices, served by the plugin that is loaded
// (ggml-by-name.h).
//
// Programs for any device use ggml-backend.h instead: device 0 here is the first device of the
// backend "Vulkan" there. Devices count from 0 in the plugin's order; one out of range is no
// device.
#ifndef GGML_VULKAN_H
#define GGML_VULKAN_H

#include "ggml-by-name.h"

// Name of the backend, and most devices that programs provide for.
#define GGML_VK_NAME "Vulkan"
#define GGML_VK_MAX_DEVICES 16

#ifdef __cplusplus
extern "C" {
#endif

// A new stream of the device, which the caller frees, or NULL. May take long: the driver is asked
// for a device. [any-thread]
static inline ggml_backend_t ggml_backend_vk_init(size_t dev_num) {
    return ggml_by_name_init(GGML_VK_NAME, dev_num);
}

// Whether the stream is of a Vulkan device; false for NULL. [any-thread]
static inline bool ggml_backend_is_vk(ggml_backend_t backend) {
    return ggml_by_name_is(GGML_VK_NAME, backend);
}

// Number of devices; 0 without the plugin. [any-thread]
static inline int ggml_backend_vk_get_device_count(void) {
    return ggml_by_name_device_count(GGML_VK_NAME);
}

// What a person calls the device, cut to description_size bytes with its end; "" without the
// device. [any-thread]
static inline void ggml_backend_vk_get_device_description(int device, char *description,
                                                          size_t description_size) {
    ggml_by_name_description(GGML_VK_NAME, device, description, description_size);
}

// Bytes of the device's memory; 0 without the device. Neither pointer may be NULL. May block.
// [any-thread]
static inline void ggml_backend_vk_get_device_memory(int device, size_t *free, size_t *total) {
    ggml_by_name_memory(GGML_VK_NAME, device, free, total);
}

// The device's memory, or NULL. It lives as long as the plugin. [any-thread]
static inline ggml_backend_buffer_type_t ggml_backend_vk_buffer_type(size_t dev_num) {
    return ggml_by_name_buffer_type(GGML_VK_NAME, dev_num);
}

// Host memory that the devices reach fast, or NULL. [any-thread]
static inline ggml_backend_buffer_type_t ggml_backend_vk_host_buffer_type(void) {
    return ggml_by_name_host_buffer_type(GGML_VK_NAME);
}

// The backend, or NULL if the plugin is not loaded. [any-thread]
static inline ggml_backend_reg_t ggml_backend_vk_reg(void) {
    return ggml_backend_reg_by_name(GGML_VK_NAME);
}

#ifdef __cplusplus
}
#endif

#endif
