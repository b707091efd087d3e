// SPDX-License-Identifier: MIT
// Buffers that other instances use too (extension "ggml.external-memory"), by opaque file
// descriptors. Ordering stays with the callers: not every driver exports semaphores.
#define _GNU_SOURCE
#include "memory/external.h"

#include <fcntl.h>
#include <unistd.h>

#include "gpu/base/files.h"
#include "memory/buffer_type.h"

// Identity of device and driver: memory can be shared only where both agree.
static void read_ids(VkPhysicalDevice physical, VkPhysicalDeviceIDProperties *out_ids) {
    *out_ids =
        (VkPhysicalDeviceIDProperties){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = out_ids};
    vkGetPhysicalDeviceProperties2(physical, &properties);
}

// The context, if the driver exports and imports buffers; else NULL, and *out_status says why.
// Dedicated-only drivers want an image or buffer named at the allocation, which the importing side
// could not repeat.
static struct gvk_context *context_of(struct gvk_device *device, int32_t *out_status) {
    const VkPhysicalDeviceExternalBufferInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkExternalBufferProperties properties = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    const VkExternalMemoryFeatureFlags both =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    *out_status = GGML_HOST_UNSUPPORTED;
    if (!device->probe.has.memory_fd) return NULL;
    vkGetPhysicalDeviceExternalBufferProperties(device->physical, &info, &properties);
    const VkExternalMemoryFeatureFlags features =
        properties.externalMemoryProperties.externalMemoryFeatures;
    if ((features & both) != both || features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT)
        return NULL;
    struct gvk_context *context = gvk_device_context(device);
    *out_status = GGML_HOST_FAILED;
    return context && gvk_context_alive(context) ? context : NULL;
}

// INVALID_ARGUMENT, with the error set, for sizes that no buffer has.
static int32_t check_bytes(const struct gvk_device *device, uint64_t bytes) {
    if (bytes > 0 && bytes <= gvk_buffer_most(&device->probe)) return GGML_HOST_OK;
    ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "%s: a buffer of %llu bytes can't be made",
                  device->base.name, (unsigned long long)bytes);
    return GGML_HOST_INVALID_ARGUMENT;
}

// Makes a buffer that can be exported. The host owns *out_buffer.
static int32_t buffer_new(ggml_backend_dev_t handle, size_t bytes,
                          ggml_backend_buffer_t *out_buffer) {
    struct gvk_device *device = gvk_device_of(handle);
    struct gvk_buffer *buffer;
    int32_t status = check_bytes(device, bytes);
    if (status != GGML_HOST_OK) return status;
    struct gvk_context *context = context_of(device, &status);
    if (!context) return status;
    status = ggml_entry_status(gvk_buffer_new_external(context, bytes, &buffer));
    return status == GGML_HOST_OK ? gvk_buffer_wrap(device, buffer, bytes, out_buffer) : status;
}

// The caller closes the file descriptor; each export makes another one.
static int32_t buffer_export(ggml_backend_buffer_t handle, uint32_t type,
                             struct ggml_external_memory *out_memory) {
    const struct gvk_buffer *buffer = gvk_buffer_of(handle);
    VkPhysicalDeviceIDProperties ids;
    if (!buffer || !buffer->is_external || type != GGML_EXTERNAL_OPAQUE_FD)
        return GGML_HOST_UNSUPPORTED;
    struct gvk_context *context = buffer->context;
    const VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                       .memory = buffer->memory.handle,
                                       .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    int fd = -1;
    const VkResult result = context->api.vkGetMemoryFdKHR(context->device, &info, &fd);
    if (!gvk_context_check(context, result, "vkGetMemoryFdKHR")) return GGML_HOST_FAILED;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    read_ids(context->physical, &ids);
    out_memory->type = type;
    out_memory->fd = fd;
    out_memory->memory_type = buffer->memory_type;
    out_memory->bytes = handle->size;
    out_memory->allocation_bytes = buffer->memory.size;
    memcpy(out_memory->device_uuid, ids.deviceUUID, VK_UUID_SIZE);
    memcpy(out_memory->driver_uuid, ids.driverUUID, VK_UUID_SIZE);
    return GGML_HOST_OK;
}

static int32_t refuse(const struct gvk_device *device, const char *what) {
    ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "%s: memory can't be imported: %s", device->base.name,
                  what);
    return GGML_HOST_INVALID_ARGUMENT;
}

// The identifiers have to be equal on both sides for opaque descriptors (Vulkan's valid usage); the
// driver is given nothing that breaks this, since it may crash on it.
static int32_t check(const struct gvk_device *device, const struct ggml_external_memory *memory) {
    VkPhysicalDeviceIDProperties ids;
    read_ids(device->physical, &ids);
    if (memcmp(memory->device_uuid, ids.deviceUUID, VK_UUID_SIZE) != 0 ||
        memcmp(memory->driver_uuid, ids.driverUUID, VK_UUID_SIZE) != 0)
        return refuse(device, "it is of another device or driver");
    if (memory->allocation_bytes < memory->bytes) return refuse(device, "it is too small");
    if (!gpu_file_may_be_memory(memory->fd, memory->allocation_bytes))
        return refuse(device, "the file descriptor is not one of that much memory");
    return check_bytes(device, memory->bytes);
}

// The caller keeps its file descriptor. UNSUPPORTED for other kinds of memory, INVALID_ARGUMENT
// where the memory can't be this device's.
static int32_t buffer_import(ggml_backend_dev_t handle, const struct ggml_external_memory *memory,
                             ggml_backend_buffer_t *out_buffer) {
    struct gvk_device *device = gvk_device_of(handle);
    struct gvk_buffer *buffer;
    int32_t status;
    if (memory->size < sizeof(*memory) || memory->type != GGML_EXTERNAL_OPAQUE_FD)
        return GGML_HOST_UNSUPPORTED;
    struct gvk_context *context = context_of(device, &status);
    if (!context) return status;
    status = check(device, memory);
    if (status != GGML_HOST_OK) return status;
    const int fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0); // the driver takes what it is given
    if (fd < 0) return refuse(device, "the file descriptor can't be duplicated");
    const enum ggml_status made = gvk_buffer_import_fd(
        context, fd, memory->bytes, memory->allocation_bytes, memory->memory_type, &buffer);
    if (made != GGML_STATUS_SUCCESS) return refuse(device, "the driver refuses it");
    return gvk_buffer_wrap(device, buffer, memory->bytes, out_buffer);
}

const struct ggml_extension_external_memory gvk_external_memory = {
    .size = sizeof(gvk_external_memory),
    .revision = GGML_EXTENSION_EXTERNAL_MEMORY_REVISION,
    .buffer_new = buffer_new,
    .buffer_export = buffer_export,
    .buffer_import = buffer_import,
};
