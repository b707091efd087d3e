// SPDX-License-Identifier: MIT
// What devices and registries of GPU plugins have alike, and the entries of their tables that need
// nothing else.
#ifndef GPU_DEVICE_H
#define GPU_DEVICE_H

#include "ggml-impl.h"
#include "ggml-plugin.h"

enum { GPU_MAX_DETAILS = 8 };

// Pairs for people and programs (extension "ggml.device-info").
struct gpu_details {
    int n;
    char texts[GPU_MAX_DETAILS][GGML_DEVICE_INFO_MAX_TEXT];
    struct ggml_backend_feature list[GPU_MAX_DETAILS + 1]; // ends with one without a name
};

// Appends a pair; a value that turns out empty is left out. The key outlives the details.
void gpu_details_add(struct gpu_details *details, const char *key, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(3, 4);

// The first member of a plugin's device, which the host's handle and those of the buffer types have
// as their context.
struct gpu_device {
    struct ggml_backend_device base;
    struct ggml_backend_buffer_type buft;      // the device's memory
    struct ggml_backend_buffer_type host_buft; // memory of the host that it copies fast from and to
    char name[32], host_name[32];
    char description[1024];
    char id[64];
    struct gpu_details details;
};

// Names the device FAMILYnumber and its host memory FAMILYnumber_Host, and makes its handles;
// description, id and details stay empty.
void gpu_device_init(struct gpu_device *device, const struct ggml_device_table *table,
                     ggml_backend_reg_t reg, const struct ggml_buffer_type_table *types,
                     const char *family, int number);

// Entries of a device's table. [any-thread]
const char *gpu_device_name(ggml_backend_dev_t device);
const char *gpu_device_description(ggml_backend_dev_t device);
ggml_backend_buffer_type_t gpu_device_buffer_type(ggml_backend_dev_t device);
ggml_backend_buffer_type_t gpu_device_host_buffer_type(ggml_backend_dev_t device);
// Fills name, description, type, id and memory through the table; the capabilities are streams,
// pinned memory and events. [any-thread]
void gpu_device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *out_props);
// The extension "ggml.device-info", NULL where a newer revision is asked for. [any-thread]
const void *gpu_device_info_extension(uint32_t min_revision);

// What a registry's handle has as its context.
struct gpu_reg {
    const char *name;
    void *devices; // n_devices structures of device_bytes that begin with a struct gpu_device
    size_t device_bytes;
    int n_devices;
};

// Entries of a registry's table. [any-thread]
const char *gpu_reg_name(ggml_backend_reg_t reg);
size_t gpu_reg_device_count(ggml_backend_reg_t reg);
ggml_backend_dev_t gpu_reg_device(ggml_backend_reg_t reg, size_t index);

#endif
