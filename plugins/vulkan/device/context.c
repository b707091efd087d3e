// SPDX-License-Identifier: MIT
// Lost devices: the first result that says so sets a flag, and every later call fails before it
// reaches the driver. Vulkan has no way back for a logical device; a new one is made when the
// plugin is started again. Queues are handed out in turn: streams share them if there are more, and
// a queue's mutex is held only while submitting.
#include "device/context.h"

#ifndef _WIN32
#include <pthread.h>
#endif

#include "memory/buffer.h"
#include "memory/transfer.h"
#include "pipeline/pipeline.h"
#include "queue/bridge.h"
#include "queue/timeline.h"

// The one place where results are judged: a lost device is noted for all later calls.
bool gvk_context_check(struct gvk_context *context, VkResult result, const char *call) {
    if (result == VK_SUCCESS) return true;
    if (result == VK_ERROR_DEVICE_LOST) atomic_store(&context->lost, true);
    gvk_fail_call(result, call);
    return false;
}

// Of a fork's processes the parent alone has the driver's threads.
static atomic_bool in_child;

#ifndef _WIN32
static void note_child(void) {
    atomic_store(&in_child, true);
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, note_child);
}
#endif

bool gvk_context_lost(const struct gvk_context *context) {
    return atomic_load(&context->lost) || atomic_load(&in_child);
}

// false with the reason recorded: after a lost device, and in the child of a fork, which inherits
// no usable connection to the driver.
bool gvk_context_alive(struct gvk_context *context) {
    if (!gvk_context_lost(context)) return true;
    if (atomic_load(&in_child)) {
        ggml_sdk_fail(GGML_HOST_DEVICE_LOST, "vulkan: there is no device in the child of a fork");
    } else {
        gvk_fail_call(VK_ERROR_DEVICE_LOST, "vulkan");
    }
    return false;
}

struct gvk_queue *gvk_context_queue(struct gvk_context *context) {
    return &context->queues[atomic_fetch_add(&context->next_queue, 1) % context->n_queues];
}

// --- making --------------------------------------------------------------------------------------

// Everything that is enabled, chained from `features`.
struct wanted {
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDevice16BitStorageFeatures storage16;
    VkPhysicalDevice8BitStorageFeatures storage8;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceShaderFloat16Int8Features float16;
    VkPhysicalDeviceShaderIntegerDotProductFeatures int_dot;
    VkPhysicalDeviceCooperativeMatrixFeaturesNV coopmat;
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model;
    const char *extensions[8];
    uint32_t n_extensions;
};

// Features have to be asked for to be used, in a chain of structures; a structure of an extension
// that the device lacks must not be in it.
static void want_optional(struct wanted *wanted, const struct gvk_probe *probe,
                          const struct gvk_features *features) {
    void **last = &wanted->float16.pNext;
    if (features->int_dot) {
        wanted->int_dot.sType =
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
        wanted->int_dot.shaderIntegerDotProduct = VK_TRUE;
        *last = &wanted->int_dot;
        last = &wanted->int_dot.pNext;
        wanted->extensions[wanted->n_extensions++] =
            VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
    }
    if (features->coopmat) {
        wanted->coopmat.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV;
        wanted->coopmat.cooperativeMatrix = VK_TRUE;
        wanted->memory_model.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
        wanted->memory_model.vulkanMemoryModel = VK_TRUE;
        wanted->coopmat.pNext = &wanted->memory_model;
        *last = &wanted->coopmat;
        wanted->extensions[wanted->n_extensions++] = VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME;
    }
    if (probe->has.host_pointer)
        wanted->extensions[wanted->n_extensions++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    if (probe->has.memory_fd)
        wanted->extensions[wanted->n_extensions++] = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
    if (probe->has.portability)
        wanted->extensions[wanted->n_extensions++] = "VK_KHR_portability_subset";
}

// Chains the features that the shaders need, of those that the device has: what is not asked for
// may not be used.
static void want(struct wanted *wanted, const struct gvk_probe *probe,
                 const struct gvk_features *features) {
    *wanted = (struct wanted){
        .features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2},
        .storage16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
                      .storageBuffer16BitAccess = VK_TRUE},
        .storage8 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                     .storageBuffer8BitAccess = VK_TRUE},
        .timeline = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
                     .timelineSemaphore = VK_TRUE},
        .float16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
                    .shaderFloat16 = probe->float16.shaderFloat16,
                    .shaderInt8 = probe->float16.shaderInt8},
    };
    // An index that is out of range, such as that of a row, then stays inside the operand.
    wanted->features.features.robustBufferAccess = probe->base.robustBufferAccess;
    wanted->features.pNext = &wanted->storage16;
    wanted->storage16.pNext = &wanted->storage8;
    wanted->storage8.pNext = &wanted->timeline;
    wanted->timeline.pNext = &wanted->float16;
    want_optional(wanted, probe, features);
}

// Makes the logical device and its queues. All queues are of one family, so that buffers need no
// transfer of ownership between them.
static bool create_device(struct gvk_context *context) {
    float priorities[GVK_MAX_QUEUES];
    struct wanted wanted;
    want(&wanted, context->probe, context->features);
    for (int i = 0; i < GVK_MAX_QUEUES; ++i)
        priorities[i] = 1;
    const uint32_t family = (uint32_t)context->probe->queue_family;
    context->n_queues = MIN(context->probe->n_queues, GVK_MAX_QUEUES);
    const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                            .queueFamilyIndex = family,
                                            .queueCount = context->n_queues,
                                            .pQueuePriorities = priorities};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &wanted.features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queues,
                                     .enabledExtensionCount = wanted.n_extensions,
                                     .ppEnabledExtensionNames = wanted.extensions};
    const VkResult result = vkCreateDevice(context->physical, &info, NULL, &context->device);
    if (result != VK_SUCCESS) context->device = VK_NULL_HANDLE;
    if (!gvk_context_check(context, result, "vkCreateDevice")) return false;
    gvk_loader_functions(context->device, &context->api);
    for (uint32_t i = 0; i < context->n_queues; ++i) {
        context->api.vkGetDeviceQueue(context->device, family, i, &context->queues[i].handle);
        pthread_mutex_init(&context->queues[i].mutex, NULL);
    }
    return true;
}

// One layout per number of operands: all shaders with as many share it, so that sets of one can be
// allocated before its pipeline is known.
static bool create_layout(struct gvk_context *context, uint32_t n) {
    VkDescriptorSetLayoutBinding bindings[GVK_MAX_OPERANDS + 1];
    for (uint32_t i = 0; i <= n; ++i) {
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = i == 0 ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC
                                     : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    }
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = n + 1,
        .pBindings = bindings};
    VkResult result = context->api.vkCreateDescriptorSetLayout(context->device, &set, NULL,
                                                               &context->set_layouts[n]);
    if (result != VK_SUCCESS) context->set_layouts[n] = VK_NULL_HANDLE;
    if (!gvk_context_check(context, result, "vkCreateDescriptorSetLayout")) return false;
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &context->set_layouts[n]};
    result =
        context->api.vkCreatePipelineLayout(context->device, &info, NULL, &context->layouts[n]);
    if (result != VK_SUCCESS) context->layouts[n] = VK_NULL_HANDLE;
    return gvk_context_check(context, result, "vkCreatePipelineLayout");
}

// Makes everything that streams of the device share; NULL after the error was set.
// gvk_context_free() takes it half made, too.
struct gvk_context *gvk_context_new(VkPhysicalDevice physical, const struct gvk_probe *probe,
                                    const struct gvk_features *features) {
    struct gvk_context *context = ggml_aligned_malloc(sizeof(*context));
    if (!context) return NULL;
    memset(context, 0, sizeof(*context));
    context->physical = physical;
    context->probe = probe;
    context->features = features;
    context->direct =
        gvk_probe_unified(probe) && !gpu_has_word(gpu_config("GGML_VULKAN_DEBUG"), "staging");
    atomic_init(&context->lost, false);
    atomic_init(&context->next_queue, 0);
    atomic_init(&context->next_buffer_id, 1);
    gvk_memory_pool_init(&context->memory);
    pthread_mutex_init(&context->timelines_mutex, NULL);
    pthread_mutex_init(&context->bridge_mutex, NULL);
    pthread_mutex_init(&context->grids_mutex, NULL);
    bool ok = create_device(context);
    for (uint32_t n = 1; n <= GVK_MAX_OPERANDS && ok; ++n)
        ok = create_layout(context, n);
    ok = ok && (context->pipelines = gvk_pipelines_new(context)) != NULL;
    ok = ok && (context->transfer = gvk_transfer_new(context)) != NULL;
    if (ok) return context;
    gvk_context_free(context);
    return NULL;
}

// Children before parents. Timelines are gone by then, as streams and events are; what they have
// left behind are spare semaphores.
static void free_device(struct gvk_context *context) {
    const struct VolkDeviceTable *api = &context->api;
    api->vkDeviceWaitIdle(context->device);
    gvk_transfer_free(context->transfer);
    gvk_timeline_free_spares(context);
    gvk_pipelines_free(context->pipelines);
    for (int n = 1; n <= GVK_MAX_OPERANDS; ++n) {
        if (context->layouts[n])
            api->vkDestroyPipelineLayout(context->device, context->layouts[n], NULL);
        if (context->set_layouts[n])
            api->vkDestroyDescriptorSetLayout(context->device, context->set_layouts[n], NULL);
    }
    gvk_buffer_free(context->grids);
    gvk_memory_pool_free(context);
    for (uint32_t i = 0; i < context->n_queues; ++i)
        pthread_mutex_destroy(&context->queues[i].mutex);
    api->vkDestroyDevice(context->device, NULL);
}

void gvk_context_end_threads(struct gvk_context *context) {
    if (!context) return;
    gvk_bridge_free(context->bridge);
    context->bridge = NULL;
}

// Also frees a context whose creation failed half-way. The bridge's thread ends first, since it
// uses the device.
void gvk_context_free(struct gvk_context *context) {
    if (!context) return;
    gvk_context_end_threads(context);
    if (context->device)
        free_device(context);
    else
        pthread_mutex_destroy(&context->memory.mutex);
    pthread_mutex_destroy(&context->timelines_mutex);
    pthread_mutex_destroy(&context->bridge_mutex);
    pthread_mutex_destroy(&context->grids_mutex);
    ggml_aligned_free(context, sizeof(*context));
}
