// SPDX-License-Identifier: MIT
// The drivers' compiled shaders on disk, one file for each device and version of its driver. They
// only save time: a failure is logged at debug level and nothing else.
#ifndef GVK_CACHE_FILE_H
#define GVK_CACHE_FILE_H

#include "device/probe.h"

// Whether there is a place for files. [any-thread]
bool gvk_cache_file_wanted(void);
// What was written last for this device and driver, to be freed with ggml_aligned_free(), or NULL
// and 0. [any-thread]
void *gvk_cache_file_read(const struct gvk_probe *probe, size_t *out_size);
// Replaces it at once: a reader sees the old file or the new one. [any-thread]
void gvk_cache_file_write(const struct gvk_probe *probe, const void *data, size_t size);

#endif
