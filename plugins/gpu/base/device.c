// SPDX-License-Identifier: MIT
// A plugin's device begins with a struct gpu_device, so that its own pointer, the context of all
// handles, is also that of this one.
#include "gpu/base/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gpu_details_add(struct gpu_details *details, const char *key, const char *format, ...) {
    va_list args;
    if (details->n == GPU_MAX_DETAILS) return;
    char *text = details->texts[details->n];
    va_start(args, format);
    vsnprintf(text, sizeof(details->texts[0]), format, args);
    va_end(args);
    if (text[0] != '\0') details->list[details->n++] = (struct ggml_backend_feature){key, text};
}

// --- devices -------------------------------------------------------------------------------------

void gpu_device_init(struct gpu_device *device, const struct ggml_device_table *table,
                     ggml_backend_reg_t reg, const struct ggml_buffer_type_table *types,
                     const char *family, int number) {
    memset(device, 0, sizeof(*device));
    device->base = (struct ggml_backend_device){.table = table, .reg = reg, .context = device};
    device->buft = (struct ggml_backend_buffer_type){
        .table = types, .device = &device->base, .context = device};
    device->host_buft = device->buft;
    snprintf(device->name, sizeof(device->name), "%.10s%d", family, number);
    snprintf(device->host_name, sizeof(device->host_name), "%.20s_Host", device->name);
}

static struct gpu_device *device_of(ggml_backend_dev_t handle) {
    return handle->context;
}

const char *gpu_device_name(ggml_backend_dev_t device) {
    return device_of(device)->name;
}

const char *gpu_device_description(ggml_backend_dev_t device) {
    return device_of(device)->description;
}

ggml_backend_buffer_type_t gpu_device_buffer_type(ggml_backend_dev_t device) {
    return &device_of(device)->buft;
}

ggml_backend_buffer_type_t gpu_device_host_buffer_type(ggml_backend_dev_t device) {
    return &device_of(device)->host_buft;
}

// Type and free memory are asked of the plugin's own table: they may change while it runs.
void gpu_device_props(ggml_backend_dev_t handle, struct ggml_backend_dev_props *out_props) {
    struct gpu_device *device = device_of(handle);
    out_props->name = device->name;
    out_props->description = device->description;
    out_props->type = handle->table->get_type(handle);
    out_props->device_id = device->id;
    out_props->caps =
        (struct ggml_backend_dev_caps){.async = true, .host_buffer = true, .events = true};
    handle->table->get_memory(handle, &out_props->memory_free, &out_props->memory_total);
}

static const struct ggml_backend_feature *device_info(ggml_backend_dev_t device) {
    return device_of(device)->details.list;
}

const void *gpu_device_info_extension(uint32_t min_revision) {
    static const struct ggml_extension_device_info info = {
        .size = sizeof(info), .revision = GGML_EXTENSION_DEVICE_INFO_REVISION, .info = device_info};
    return min_revision <= info.revision ? &info : NULL;
}

// --- registries ----------------------------------------------------------------------------------

static const struct gpu_reg *registry_of(ggml_backend_reg_t handle) {
    return handle->context;
}

const char *gpu_reg_name(ggml_backend_reg_t reg) {
    return registry_of(reg)->name;
}

size_t gpu_reg_device_count(ggml_backend_reg_t reg) {
    return (size_t)registry_of(reg)->n_devices;
}

// Devices lie in an array of the plugin's own structure, whose size the registry tells.
ggml_backend_dev_t gpu_reg_device(ggml_backend_reg_t handle, size_t index) {
    const struct gpu_reg *reg = registry_of(handle);
    if (index >= (size_t)reg->n_devices) return NULL;
    return &((struct gpu_device *)(void *)((char *)reg->devices + index * reg->device_bytes))->base;
}
