// SPDX-License-Identifier: MIT
// ggml-vulkan.h: ggml's calls for Vulkan devices, answered by the plugin that is loaded
// (ggml-by-name.h).
#ifndef GGML_VULKAN_H
#define GGML_VULKAN_H

#include "ggml-by-name.h"

#define GGML_VK_NAME "Vulkan"
#define GGML_VK_MAX_DEVICES 16

#ifdef __cplusplus
extern "C" {
#endif

// A new stream of the device, which the caller frees, or NULL. May block. [any-thread]
static inline ggml_backend_t ggml_backend_vk_init(size_t dev_num) {
    return ggml_by_name_init(GGML_VK_NAME, dev_num);
}

// [any-thread]
static inline bool ggml_backend_is_vk(ggml_backend_t backend) {
    return ggml_by_name_is(GGML_VK_NAME, backend);
}

// [any-thread]
static inline int ggml_backend_vk_get_device_count(void) {
    return ggml_by_name_device_count(GGML_VK_NAME);
}

// "" without the device. [any-thread]
static inline void ggml_backend_vk_get_device_description(int device, char *description,
                                                          size_t description_size) {
    ggml_by_name_description(GGML_VK_NAME, device, description, description_size);
}

// Bytes; 0 without the device. May block. [any-thread]
static inline void ggml_backend_vk_get_device_memory(int device, size_t *free, size_t *total) {
    ggml_by_name_memory(GGML_VK_NAME, device, free, total);
}

// The device's memory, or NULL. [any-thread]
static inline ggml_backend_buffer_type_t ggml_backend_vk_buffer_type(size_t dev_num) {
    return ggml_by_name_buffer_type(GGML_VK_NAME, dev_num);
}

// Host memory that the devices reach fast, or NULL. [any-thread]
static inline ggml_backend_buffer_type_t ggml_backend_vk_host_buffer_type(void) {
    return ggml_by_name_host_buffer_type(GGML_VK_NAME);
}

// NULL if the plugin is not loaded. [any-thread]
static inline ggml_backend_reg_t ggml_backend_vk_reg(void) {
    return ggml_backend_reg_by_name(GGML_VK_NAME);
}

#ifdef __cplusplus
}
#endif

#endif
