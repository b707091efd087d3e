// SPDX-License-Identifier: MIT
// A buffer is the driver's handle, memory bound to it and, where the host can't reach that, an
// address range. Each has a number that is never used again: keys of recordings and trackers of
// barriers go by it, where a pointer could come back as another buffer's.
#include "memory/buffer.h"

#ifndef _WIN32
#include <unistd.h>
#endif

#include "gpu/base/space.h"

// Shaders read whole vectors, so that an operand's last one may reach beyond its tensor.
enum { PADDING = 64 };

static const VkBufferUsageFlags usage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

// The driver's handle, still without memory; NULL after the error was set.
static struct gvk_buffer *make(struct gvk_context *context, uint64_t size, const void *next) {
    struct gvk_buffer *buffer = ggml_aligned_malloc(sizeof(*buffer));
    if (!buffer) return NULL;
    *buffer = (struct gvk_buffer){.context = context, .size = size};
    buffer->id = atomic_fetch_add(&context->next_buffer_id, 1);
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = next,
                                     .size = size,
                                     .usage = usage,
                                     .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
    const VkResult result =
        context->api.vkCreateBuffer(context->device, &info, NULL, &buffer->handle);
    if (gvk_context_check(context, result, "vkCreateBuffer")) return buffer;
    ggml_aligned_free(buffer, sizeof(*buffer));
    return NULL;
}

// maxMemoryAllocationSize bounds one allocation; both paddings have to fit.
uint64_t gvk_buffer_most(const struct gvk_probe *probe) {
    return probe->maintenance3.maxMemoryAllocationSize - 2 * PADDING;
}

static uint64_t padded(uint64_t size) {
    return (size + 2 * PADDING - 1) / PADDING * PADDING;
}

// Takes memory from the pool. ALLOC_FAILED if there is none, also for sizes over the driver's
// limit.
enum ggml_status gvk_buffer_new(struct gvk_context *context, uint64_t size, enum gvk_memory_use use,
                                struct gvk_buffer **out_buffer) {
    *out_buffer = NULL;
    const uint64_t most = gvk_buffer_most(context->probe);
    if (size > most) {
        return gpu_fail_graph(GGML_HOST_OUT_OF_MEMORY,
                              "vulkan: a buffer of %llu bytes is over the driver's limit of %llu",
                              (unsigned long long)size, (unsigned long long)most);
    }
    struct gvk_buffer *buffer = make(context, padded(size), NULL);
    if (!buffer) return GGML_STATUS_ALLOC_FAILED;
    VkMemoryRequirements needs;
    context->api.vkGetBufferMemoryRequirements(context->device, buffer->handle, &needs);
    enum ggml_status status = gvk_memory_take(context, &needs, use, &buffer->memory);
    if (status != GGML_STATUS_SUCCESS) goto fail;
    const VkResult result = context->api.vkBindBufferMemory(
        context->device, buffer->handle, buffer->memory.handle, buffer->memory.offset);
    if (!gvk_context_check(context, result, "vkBindBufferMemory")) {
        status = GGML_STATUS_FAILED;
        goto fail;
    }
    buffer->mapped = buffer->base = buffer->memory.mapped;
    *out_buffer = buffer;
    return GGML_STATUS_SUCCESS;
fail:
    gvk_buffer_free(buffer);
    return status;
}

// --- memory of the host --------------------------------------------------------------------------

// The type of memory that the driver can see the pointer as: coherent, as it is never flushed. -1
// after the error was set.
static int import_type(struct gvk_context *context, void *ptr, uint32_t allowed) {
    VkMemoryHostPointerPropertiesEXT pointer = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    const VkResult result = context->api.vkGetMemoryHostPointerPropertiesEXT(
        context->device, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, ptr, &pointer);
    if (!gvk_context_check(context, result, "vkGetMemoryHostPointerPropertiesEXT")) return -1;
    const VkPhysicalDeviceMemoryProperties *memory = &context->probe->memory;
    for (uint32_t i = 0; i < memory->memoryTypeCount; ++i) {
        const VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        if ((pointer.memoryTypeBits & allowed) >> i & 1 &&
            (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT))
            return (int)i;
    }
    ggml_sdk_fail(GGML_HOST_UNSUPPORTED, "vulkan: the driver can't import this memory");
    return -1;
}

// Binds the caller's memory (VK_EXT_external_memory_host), which stays the caller's.
static bool import_memory(struct gvk_buffer *buffer, void *ptr) {
    struct gvk_context *context = buffer->context;
    VkMemoryRequirements needs;
    context->api.vkGetBufferMemoryRequirements(context->device, buffer->handle, &needs);
    const int type = import_type(context, ptr, needs.memoryTypeBits);
    if (type < 0) return false;
    const VkImportMemoryHostPointerInfoEXT pointer = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = ptr};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &pointer,
                                       .allocationSize = buffer->size,
                                       .memoryTypeIndex = (uint32_t)type};
    VkResult result =
        context->api.vkAllocateMemory(context->device, &info, NULL, &buffer->memory.handle);
    if (result != VK_SUCCESS) buffer->memory.handle = VK_NULL_HANDLE;
    if (!gvk_context_check(context, result, "vkAllocateMemory")) return false;
    buffer->memory.size = buffer->size;
    result =
        context->api.vkBindBufferMemory(context->device, buffer->handle, buffer->memory.handle, 0);
    return gvk_context_check(context, result, "vkBindBufferMemory");
}

// A buffer over the application's memory, without a copy. The memory has to outlive the buffer, and
// address and size have to be multiples of the driver's alignment.
enum ggml_status gvk_buffer_import(struct gvk_context *context, void *ptr, size_t size,
                                   struct gvk_buffer **out_buffer) {
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT};
    *out_buffer = NULL;
    struct gvk_buffer *buffer = make(context, size, &external);
    if (!buffer) return GGML_STATUS_ALLOC_FAILED;
    if (!import_memory(buffer, ptr)) {
        gvk_buffer_free(buffer);
        return GGML_STATUS_FAILED;
    }
    // The memory is the application's mapping at the same time.
    buffer->mapped = buffer->base = ptr;
    *out_buffer = buffer;
    return GGML_STATUS_SUCCESS;
}

// --- memory that others use too ------------------------------------------------------------------

// Opaque descriptors: only the same driver and device understand them, which is what sharing among
// processes on one device needs. Ownership goes over with the import: the driver closes the file.
static const VkExternalMemoryBufferCreateInfo as_fd = {
    .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
    .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};

// Binds exported or imported memory, which is one allocation per buffer.
static enum ggml_status bind(struct gvk_buffer *buffer) {
    struct gvk_context *context = buffer->context;
    const VkResult result =
        context->api.vkBindBufferMemory(context->device, buffer->handle, buffer->memory.handle, 0);
    buffer->mapped = buffer->base = buffer->memory.mapped;
    buffer->is_external = true;
    return gvk_context_check(context, result, "vkBindBufferMemory") ? GGML_STATUS_SUCCESS
                                                                    : GGML_STATUS_FAILED;
}

// Memory of its own instead of a part of the pool's: an export is of a whole allocation.
enum ggml_status gvk_buffer_new_external(struct gvk_context *context, uint64_t size,
                                         struct gvk_buffer **out_buffer) {
    const VkExportMemoryAllocateInfo exported = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    enum ggml_status status = GGML_STATUS_FAILED;
    VkMemoryRequirements needs;
    *out_buffer = NULL;
    struct gvk_buffer *buffer = make(context, padded(size), &as_fd);
    if (!buffer) return GGML_STATUS_ALLOC_FAILED;
    context->api.vkGetBufferMemoryRequirements(context->device, buffer->handle, &needs);
    const int type = gvk_memory_choose(context, needs.memoryTypeBits, GVK_MEMORY_DEVICE);
    if (type < 0)
        ggml_sdk_fail(GGML_HOST_FAILED, "vulkan: the driver offers no fitting kind of memory");
    else
        status = gvk_memory_allocate(context, type, needs.size, &exported, &buffer->memory);
    if (status == GGML_STATUS_SUCCESS) status = bind(buffer);
    if (status != GGML_STATUS_SUCCESS) {
        gvk_buffer_free(buffer);
        return status;
    }
    buffer->memory_type = (uint32_t)type;
    *out_buffer = buffer;
    return status;
}

#ifndef _WIN32
// Takes the file descriptor in any case: a driver that has imported it closes it, otherwise it
// is closed here.
enum ggml_status gvk_buffer_import_fd(struct gvk_context *context, int fd, uint64_t size,
                                      uint64_t allocation, uint32_t memory_type,
                                      struct gvk_buffer **out_buffer) {
    const VkImportMemoryFdInfoKHR imported = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                              .handleType =
                                                  VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
                                              .fd = fd};
    enum ggml_status status = GGML_STATUS_FAILED;
    VkMemoryRequirements needs = {0};
    *out_buffer = NULL;
    struct gvk_buffer *buffer = make(context, padded(size), &as_fd);
    if (buffer) context->api.vkGetBufferMemoryRequirements(context->device, buffer->handle, &needs);
    const bool fits = memory_type < context->probe->memory.memoryTypeCount &&
                      needs.memoryTypeBits >> memory_type & 1 && needs.size <= allocation;
    if (fits)
        status =
            gvk_memory_allocate(context, (int)memory_type, allocation, &imported, &buffer->memory);
    else
        ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT,
                      "vulkan: %llu bytes of memory of kind %u can't hold a buffer of %llu",
                      (unsigned long long)allocation, memory_type, (unsigned long long)size);
    // The driver has it only if there is memory, mapped or not.
    if (!buffer || !buffer->memory.handle) close(fd);
    if (status == GGML_STATUS_SUCCESS) status = bind(buffer);
    if (status != GGML_STATUS_SUCCESS) {
        gvk_buffer_free(buffer);
        return status;
    }
    buffer->memory_type = memory_type;
    *out_buffer = buffer;
    return status;
}
#endif

// Works for a buffer of which only a part was created. The device must have finished with it.
void gvk_buffer_free(struct gvk_buffer *buffer) {
    if (!buffer) return;
    struct gvk_context *context = buffer->context;
    if (buffer->handle) context->api.vkDestroyBuffer(context->device, buffer->handle, NULL);
    gvk_memory_give_back(context, &buffer->memory);
    if (buffer->space) gpu_space_release(buffer->base, buffer->space);
    ggml_aligned_free(buffer, sizeof(*buffer));
}

// Tensors need addresses, of which device memory has none: a range of the process' address space
// that nothing is mapped to stands for the buffer.
enum ggml_status gvk_buffer_reserve_space(struct gvk_buffer *buffer, size_t size) {
    void *base = gpu_space_reserve(size);
    if (!base)
        return gpu_fail_graph(GGML_HOST_OUT_OF_MEMORY, "vulkan: no address space for %zu bytes",
                              size);
    buffer->base = base;
    buffer->space = size;
    return GGML_STATUS_SUCCESS;
}
