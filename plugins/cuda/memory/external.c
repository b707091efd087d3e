// SPDX-License-Identifier: MIT
// Opaque file descriptors of two kinds, which the driver takes by different calls: memory that this
// plugin made (cuMemCreate), and that of Vulkan. Vulkan's UUID of a device is CUDA's; CUDA has none
// of its driver, so that what this plugin exports bears a mark of its own in its place, and what
// bears another mark is Vulkan's. NVIDIA's Vulkan driver could import CUDA's memory too, but wants
// to be told a memory type that CUDA doesn't know: so memory for both is made by Vulkan's plugin.
#define _GNU_SOURCE
#include "memory/external.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "device/loader.h"
#include "gpu/base/files.h"
#include "memory/budget.h"
#include "memory/buffer.h"

#define MARK "ggml-cuda"

// The mark with the driver's version, as memory is laid out as that version likes.
static void mark_of_driver(uint8_t out_uuid[GGML_EXTERNAL_UUID_BYTES]) {
    char text[GGML_EXTERNAL_UUID_BYTES + 1] = "";
    snprintf(text, sizeof(text), MARK "%d", cuda_driver_version());
    memset(out_uuid, 0, GGML_EXTERNAL_UUID_BYTES);
    memcpy(out_uuid, text, strlen(text));
}

static int32_t refuse(const struct cuda_device *device, const char *what) {
    return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "%s: memory can't be imported: %s",
                         device->base.name, what);
}

// Sizes come from another process: none is asked of the driver before it was looked at.
static enum ggml_host_status check_bytes(const struct cuda_device *device, uint64_t bytes) {
    if (bytes > 0 && bytes <= device->memory) return GGML_HOST_OK;
    return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "%s: a buffer of %llu bytes can't be made",
                         device->base.name, (unsigned long long)bytes);
}

// --- making and exporting ------------------------------------------------------------------------

// The range holds exactly the memory. What was made before a failure is the buffer's to release.
static enum ggml_host_status show(struct cuda_buffer *buffer, size_t bytes) {
    struct cuda_context *context = buffer->context;
    enum ggml_host_status status = cuda_range_open(context, &buffer->range, bytes);
    if (status == GGML_HOST_OK)
        status = cuda_range_show(context, &buffer->range, buffer->memory, bytes);
    buffer->base = buffer->range.begin;
    return status;
}

// Memory of the driver's unit and up, in the budget, with a range of addresses of its own. After a
// failure the buffer has what was made until then.
static enum ggml_host_status make(struct cuda_buffer *buffer) {
    struct cuda_context *context = buffer->context;
    const size_t unit = cuda_range_unit(context, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (unit == 0) return GGML_HOST_FAILED;
    const size_t bytes = (buffer->size + unit - 1) / unit * unit;
    enum ggml_host_status status = cuda_budget_take(context, bytes);
    if (status != GGML_HOST_OK) return status;
    buffer->budgeted = bytes;
    status =
        cuda_range_make(context, bytes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, &buffer->memory);
    if (status != GGML_HOST_OK) return status;
    buffer->has_memory = true;
    return show(buffer, bytes);
}

// The context of a device that exports, or NULL; *out_status says why.
static struct cuda_context *context_of(struct cuda_device *device, int32_t *out_status) {
    struct cuda_context *context = cuda_device_context(device);
    *out_status = GGML_HOST_FAILED;
    if (!context) return NULL;
    *out_status = context->exports ? GGML_HOST_OK : GGML_HOST_UNSUPPORTED;
    return context->exports ? context : NULL;
}

// Ends a buffer after a failure, or wraps it. The context is current.
static int32_t wrap_or_end(struct cuda_device *device, struct cuda_buffer *buffer,
                           enum ggml_host_status status, ggml_backend_buffer_t *out_buffer) {
    if (status == GGML_HOST_OK) return cuda_buffer_wrap(device, buffer, out_buffer);
    cuda_buffer_release(buffer);
    return status;
}

static int32_t buffer_new(ggml_backend_dev_t handle, size_t bytes,
                          ggml_backend_buffer_t *out_buffer) {
    struct cuda_device *device = cuda_device_of(handle);
    int32_t status = check_bytes(device, bytes);
    if (status != GGML_HOST_OK) return status;
    struct cuda_context *context = context_of(device, &status);
    if (!context) return status;
    struct cuda_buffer *buffer = cuda_buffer_new(context, bytes);
    if (!buffer) return GGML_HOST_OUT_OF_MEMORY;
    status = cuda_context_enter(context);
    if (status == GGML_HOST_OK) {
        status = make(buffer);
        cuda_context_leave();
    }
    return wrap_or_end(device, buffer, (enum ggml_host_status)status, out_buffer);
}

// The file descriptor is the caller's, to close when it was sent; the memory lives for as long as
// any process has it.
static int32_t buffer_export(ggml_backend_buffer_t handle, uint32_t type,
                             struct ggml_external_memory *out_memory) {
    const struct cuda_buffer *buffer = cuda_buffer_from(handle);
    const struct cu_api *api = cuda_api();
    if (!buffer || !buffer->has_memory || type != GGML_EXTERNAL_OPAQUE_FD)
        return GGML_HOST_UNSUPPORTED;
    struct cuda_context *context = buffer->context;
    enum ggml_host_status status = cuda_context_enter(context);
    if (status != GGML_HOST_OK) return status;
    int fd = -1;
    CUuuid uuid;
    CUresult result = api->cuDeviceGetUuid(&uuid, context->device);
    if (result == CUDA_SUCCESS)
        result = api->cuMemExportToShareableHandle(&fd, buffer->memory,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    status = cuda_context_check(context, result, "cuMemExportToShareableHandle");
    cuda_context_leave();
    if (status != GGML_HOST_OK) return status;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    out_memory->type = type;
    out_memory->fd = fd;
    out_memory->bytes = buffer->size;
    out_memory->allocation_bytes = buffer->range.mapped;
    memcpy(out_memory->device_uuid, uuid.bytes, sizeof(uuid.bytes));
    mark_of_driver(out_memory->driver_uuid);
    return GGML_HOST_OK;
}

// --- importing -----------------------------------------------------------------------------------

// The driver keeps nothing of the file descriptor, which stays the caller's.
static enum ggml_host_status import_own(struct cuda_buffer *buffer,
                                        const struct ggml_external_memory *memory) {
    const CUresult result = cuda_api()->cuMemImportFromShareableHandle(
        &buffer->memory, (void *)(intptr_t)memory->fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const enum ggml_host_status status =
        cuda_context_check(buffer->context, result, "cuMemImportFromShareableHandle");
    if (status != GGML_HOST_OK) return status;
    buffer->has_memory = true;
    return show(buffer, memory->allocation_bytes);
}

// The driver takes the file descriptor that it is given, unless it fails.
static enum ggml_host_status import_vulkan(struct cuda_buffer *buffer,
                                           const struct ggml_external_memory *memory) {
    const struct cu_api *api = cuda_api();
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC about = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                              .size = memory->allocation_bytes};
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole = {.size = memory->bytes};
    about.handle.fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
    if (about.handle.fd < 0)
        return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "cuda: the file can't be duplicated");
    CUresult result = api->cuImportExternalMemory(&buffer->external, &about);
    if (result != CUDA_SUCCESS) {
        close(about.handle.fd);
        buffer->external = NULL;
        return cuda_context_check(buffer->context, result, "cuImportExternalMemory");
    }
    result = api->cuExternalMemoryGetMappedBuffer(&buffer->base, buffer->external, &whole);
    return cuda_context_check(buffer->context, result, "cuExternalMemoryGetMappedBuffer");
}

// What can be seen before the driver is asked. *out_is_own: this plugin made it.
static int32_t check(const struct cuda_device *device, const struct ggml_external_memory *memory,
                     bool *out_is_own) {
    uint8_t mark[GGML_EXTERNAL_UUID_BYTES];
    CUuuid uuid;
    mark_of_driver(mark);
    *out_is_own = memcmp(memory->driver_uuid, MARK, strlen(MARK)) == 0;
    if (cuda_api()->cuDeviceGetUuid(&uuid, device->handle) != CUDA_SUCCESS)
        return ggml_sdk_fail(GGML_HOST_FAILED, "%s: the driver does not tell its UUID",
                             device->base.name);
    if (memcmp(memory->device_uuid, uuid.bytes, sizeof(uuid.bytes)) != 0)
        return refuse(device, "it is of another device");
    if (*out_is_own && memcmp(memory->driver_uuid, mark, sizeof(mark)) != 0)
        return refuse(device, "it is of another version of the driver");
    if (memory->allocation_bytes < memory->bytes) return refuse(device, "it is too small");
    if (!gpu_file_may_be_memory(memory->fd, memory->allocation_bytes))
        return refuse(device, "the file descriptor is not one of that much memory");
    return check_bytes(device, memory->bytes);
}

// A driver that refuses the file says INVALID_VALUE or the like, which is the caller's mistake.
static int32_t buffer_import(ggml_backend_dev_t handle, const struct ggml_external_memory *memory,
                             ggml_backend_buffer_t *out_buffer) {
    struct cuda_device *device = cuda_device_of(handle);
    bool is_own;
    int32_t status;
    if (memory->size < sizeof(*memory) || memory->type != GGML_EXTERNAL_OPAQUE_FD)
        return GGML_HOST_UNSUPPORTED;
    struct cuda_context *context = context_of(device, &status);
    if (!context) return status;
    status = check(device, memory, &is_own);
    if (status != GGML_HOST_OK) return status;
    struct cuda_buffer *buffer = cuda_buffer_new(context, memory->bytes);
    if (!buffer) return GGML_HOST_OUT_OF_MEMORY;
    status = cuda_context_enter(context);
    if (status == GGML_HOST_OK) {
        status = is_own ? import_own(buffer, memory) : import_vulkan(buffer, memory);
        cuda_context_leave();
    }
    if (status == GGML_HOST_FAILED) status = refuse(device, "the driver refuses it");
    return wrap_or_end(device, buffer, (enum ggml_host_status)status, out_buffer);
}

const struct ggml_extension_external_memory cuda_external_memory = {
    .size = sizeof(cuda_external_memory),
    .revision = GGML_EXTENSION_EXTERNAL_MEMORY_REVISION,
    .buffer_new = buffer_new,
    .buffer_export = buffer_export,
    .buffer_import = buffer_import,
};
