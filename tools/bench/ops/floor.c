// SPDX-License-Identifier: MIT
// Talks to Vulkan through volk, without the plugin: one queue, one command buffer with a chain of
// dispatches of a tiny kernel and a barrier before each.
#define _POSIX_C_SOURCE 200809L
#define VOLK_IMPLEMENTATION
#include "bench/ops/floor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <volk.h>

enum { N_FLOATS = 16, MAX_PHYSICAL = 32, MAX_FAMILIES = 16 };

static const uint32_t empty_code[] = {
#include "floor_empty.spv.h"
};
static const uint32_t scale_code[] = {
#include "floor_scale.spv.h"
};

struct code {
    const uint32_t *words;
    size_t bytes;
};

static const struct code codes[BENCH_FLOOR_KERNELS] = {
    [BENCH_FLOOR_EMPTY] = {empty_code, sizeof(empty_code)},
    [BENCH_FLOOR_SCALE] = {scale_code, sizeof(scale_code)},
};

// Everything of Vulkan that a chain needs; bench_floor_free() takes it half made, too.
struct bench_floor {
    VkInstance instance;
    VkPhysicalDevice physical;
    uint32_t family;
    VkDevice device;
    struct VolkDeviceTable api;
    VkQueue queue;
    VkFence fence;
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkCommandPool pool;
    VkPipeline pipelines[BENCH_FLOOR_KERNELS];
    VkCommandBuffer commands[BENCH_FLOOR_KERNELS];
};

// --- the device

// An instance of its own, beside the plugin's.
static bool make_instance(struct bench_floor *f) {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    if (volkInitialize() != VK_SUCCESS) return false;
    if (vkCreateInstance(&info, NULL, &f->instance) != VK_SUCCESS) return false;
    volkLoadInstanceOnly(f->instance);
    return true;
}

// The physical device whose name the plugin's description begins with.
static bool find_device(struct bench_floor *f, const char *description) {
    VkPhysicalDevice list[MAX_PHYSICAL];
    uint32_t n = MAX_PHYSICAL;
    if (vkEnumeratePhysicalDevices(f->instance, &n, list) < 0) return false;
    for (uint32_t i = 0; i < n && !f->physical; ++i) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(list[i], &properties);
        const char *name = properties.deviceName;
        if (strncmp(description, name, strlen(name)) == 0) f->physical = list[i];
    }
    return f->physical != VK_NULL_HANDLE;
}

// The first family of queues that computes.
static bool find_family(struct bench_floor *f) {
    VkQueueFamilyProperties families[MAX_FAMILIES];
    uint32_t n = MAX_FAMILIES;
    vkGetPhysicalDeviceQueueFamilyProperties(f->physical, &n, families);
    for (f->family = 0; f->family < n; ++f->family) {
        if (families[f->family].queueFlags & VK_QUEUE_COMPUTE_BIT) return true;
    }
    return false;
}

// A device with one queue, a fence and a pool of command buffers.
static bool make_device(struct bench_floor *f) {
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = f->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = f->family};
    if (vkCreateDevice(f->physical, &info, NULL, &f->device) != VK_SUCCESS) return false;
    volkLoadDeviceTable(&f->api, f->device);
    f->api.vkGetDeviceQueue(f->device, f->family, 0, &f->queue);
    return f->api.vkCreateFence(f->device, &fence, NULL, &f->fence) == VK_SUCCESS &&
           f->api.vkCreateCommandPool(f->device, &pool, NULL, &f->pool) == VK_SUCCESS;
}

// --- memory and descriptors

// The first type of memory of the device that fits the buffer.
static bool find_memory(const struct bench_floor *f, uint32_t possible, uint32_t *out_type) {
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(f->physical, &memory);
    for (*out_type = 0; *out_type < memory.memoryTypeCount; ++*out_type) {
        const VkMemoryPropertyFlags flags = memory.memoryTypes[*out_type].propertyFlags;
        if ((possible >> *out_type & 1) && (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            return true;
    }
    return false;
}

// A small buffer for the kernel that scales.
static bool make_buffer(struct bench_floor *f) {
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = N_FLOATS * sizeof(float),
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    VkMemoryRequirements needs;
    VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    if (f->api.vkCreateBuffer(f->device, &info, NULL, &f->buffer) != VK_SUCCESS) return false;
    f->api.vkGetBufferMemoryRequirements(f->device, f->buffer, &needs);
    memory.allocationSize = needs.size;
    if (!find_memory(f, needs.memoryTypeBits, &memory.memoryTypeIndex)) return false;
    return f->api.vkAllocateMemory(f->device, &memory, NULL, &f->memory) == VK_SUCCESS &&
           f->api.vkBindBufferMemory(f->device, f->buffer, f->memory, 0) == VK_SUCCESS;
}

// One storage buffer per set, for both kernels.
static bool make_layouts(struct bench_floor *f) {
    const VkDescriptorSetLayoutBinding binding = {.descriptorType =
                                                      VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                  .descriptorCount = 1,
                                                  .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &binding};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &f->set_layout};
    return f->api.vkCreateDescriptorSetLayout(f->device, &set, NULL, &f->set_layout) ==
               VK_SUCCESS &&
           f->api.vkCreatePipelineLayout(f->device, &layout, NULL, &f->layout) == VK_SUCCESS;
}

// One set that binds the buffer, used by both kernels.
static bool make_set(struct bench_floor *f) {
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = 1,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    if (f->api.vkCreateDescriptorPool(f->device, &pool, NULL, &f->descriptors) != VK_SUCCESS)
        return false;
    const VkDescriptorSetAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = f->descriptors,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &f->set_layout};
    if (f->api.vkAllocateDescriptorSets(f->device, &info, &f->set) != VK_SUCCESS) return false;
    const VkDescriptorBufferInfo range = {f->buffer, 0, VK_WHOLE_SIZE};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = f->set,
                                        .descriptorCount = 1,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = &range};
    f->api.vkUpdateDescriptorSets(f->device, 1, &write, 0, NULL);
    return true;
}

// --- the chains

// The module is needed only while the pipeline is made.
static bool make_pipeline(struct bench_floor *f, int kernel) {
    const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = codes[kernel].bytes,
                                           .pCode = codes[kernel].words};
    VkShaderModule module;
    if (f->api.vkCreateShaderModule(f->device, &code, NULL, &module) != VK_SUCCESS) return false;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = f->layout};
    const VkResult result = f->api.vkCreateComputePipelines(f->device, VK_NULL_HANDLE, 1, &info,
                                                            NULL, &f->pipelines[kernel]);
    f->api.vkDestroyShaderModule(f->device, module, NULL);
    return result == VK_SUCCESS;
}

// Records once; the same command buffer is submitted for each measurement, so recording isn't
// timed.
static bool record_chain(struct bench_floor *f, int kernel, int n_launches) {
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = f->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask =
                                         VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    const VkPipelineStageFlags shader = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    const VkPipelineBindPoint compute = VK_PIPELINE_BIND_POINT_COMPUTE;
    VkCommandBuffer *commands = &f->commands[kernel];
    if (f->api.vkAllocateCommandBuffers(f->device, &info, commands) != VK_SUCCESS ||
        f->api.vkBeginCommandBuffer(*commands, &begin) != VK_SUCCESS)
        return false;
    f->api.vkCmdBindPipeline(*commands, compute, f->pipelines[kernel]);
    f->api.vkCmdBindDescriptorSets(*commands, compute, f->layout, 0, 1, &f->set, 0, NULL);
    for (int i = 0; i < n_launches; ++i) {
        f->api.vkCmdPipelineBarrier(*commands, shader, shader, 0, 1, &barrier, 0, NULL, 0, NULL);
        f->api.vkCmdDispatch(*commands, 1, 1, 1);
    }
    return f->api.vkEndCommandBuffer(*commands) == VK_SUCCESS;
}

// Each chain runs once before it counts, as drivers compile late. NULL: no such device, or
// Vulkan failed.
struct bench_floor *bench_floor_new(const char *description, int n_launches) {
    struct bench_floor *f = calloc(1, sizeof(*f));
    bool good = f && make_instance(f) && find_device(f, description) && find_family(f) &&
                make_device(f) && make_buffer(f) && make_layouts(f) && make_set(f);
    for (int i = 0; i < BENCH_FLOOR_KERNELS && good; ++i)
        good = make_pipeline(f, i) && record_chain(f, i, n_launches) &&
               bench_floor_time(f, (enum bench_floor_kernel)i) >= 0;
    if (good) return f;
    bench_floor_free(f);
    return NULL;
}

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Seconds from the submission until the fence was seen, -1 after a failure.
double bench_floor_time(struct bench_floor *floor, enum bench_floor_kernel kernel) {
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &floor->commands[kernel]};
    const double start = now_seconds();
    if (floor->api.vkQueueSubmit(floor->queue, 1, &info, floor->fence) != VK_SUCCESS ||
        floor->api.vkWaitForFences(floor->device, 1, &floor->fence, VK_TRUE, UINT64_MAX) !=
            VK_SUCCESS)
        return -1;
    const double seconds = now_seconds() - start;
    return floor->api.vkResetFences(floor->device, 1, &floor->fence) == VK_SUCCESS ? seconds : -1;
}

// Handles may be NULL: Vulkan ignores those.
static void free_device(struct bench_floor *f) {
    f->api.vkDeviceWaitIdle(f->device);
    for (int i = 0; i < BENCH_FLOOR_KERNELS; ++i)
        f->api.vkDestroyPipeline(f->device, f->pipelines[i], NULL);
    f->api.vkDestroyCommandPool(f->device, f->pool, NULL);
    f->api.vkDestroyDescriptorPool(f->device, f->descriptors, NULL);
    f->api.vkDestroyPipelineLayout(f->device, f->layout, NULL);
    f->api.vkDestroyDescriptorSetLayout(f->device, f->set_layout, NULL);
    f->api.vkDestroyBuffer(f->device, f->buffer, NULL);
    f->api.vkFreeMemory(f->device, f->memory, NULL);
    f->api.vkDestroyFence(f->device, f->fence, NULL);
    f->api.vkDestroyDevice(f->device, NULL);
}

void bench_floor_free(struct bench_floor *floor) {
    if (!floor) return;
    if (floor->device) free_device(floor);
    if (floor->instance) vkDestroyInstance(floor->instance, NULL);
    free(floor);
}
