// SPDX-License-Identifier: MIT
// The drivers' compiled shaders on disk, one file for each device and version of its driver. They
// only save time: a failure is logged at debug level and nothing else.
#ifndef VK_CACHE_FILE_H
#define VK_CACHE_FILE_H

#include "device/probe.h"

// Whether there is a place for files. [any-thread]
bool vk_cache_file_wanted(void);
// What was written last for this device and driver, to be freed with ggml_aligned_free(), or NULL
// and 0. [any-thread]
void *vk_cache_file_read(const struct vk_probe *probe, size_t *out_size);
// Replaces it at once: a reader sees the old file or the new one. [any-thread]
void vk_cache_file_write(const struct vk_probe *probe, const void *data, size_t size);

#endif
