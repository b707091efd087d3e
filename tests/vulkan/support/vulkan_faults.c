// SPDX-License-Identifier: MIT
// Hooks in the tables of Vulkan functions: each counts its call, fails when it is the armed one,
// and otherwise calls the driver.
#include "vulkan_faults.h"

#include <stdatomic.h>

static atomic_long n_left = -1, n_live;
static _Atomic(const char *) reached, function;
static VkResult injected;
static struct VolkDeviceTable real;
static VkDevice last_device;

void vulkan_faults_arm(long n, VkResult result) {
    injected = result;
    atomic_store(&reached, NULL);
    atomic_store(&n_left, n);
}

void vulkan_faults_arm_function(const char *name, VkResult result) {
    injected = result;
    atomic_store(&function, name);
}

bool vulkan_faults_reached(const char **out_name) {
    *out_name = atomic_load(&reached);
    return *out_name != NULL;
}

long vulkan_faults_n_live(void) {
    return atomic_load(&n_live);
}

// A lost device has stopped: nothing of it runs on when its objects are destroyed.
static bool fails(const char *name) {
    const char *failing = atomic_load(&function);
    if (failing && strcmp(name, failing) == 0) return true;
    if (atomic_load(&n_left) < 0 || atomic_fetch_sub(&n_left, 1) != 0) return false;
    atomic_store(&reached, name);
    if (injected == VK_ERROR_DEVICE_LOST && last_device) real.vkDeviceWaitIdle(last_device);
    return true;
}

static VkResult count(VkResult result) {
    if (result == VK_SUCCESS) atomic_fetch_add(&n_live, 1);
    return result;
}

static void uncount(bool exists) {
    if (exists) atomic_fetch_sub(&n_live, 1);
}

// --- functions of a device -----------------------------------------------------------------------

#define FAULT_CREATE(Name, Info, Handle)                                                           \
    static VKAPI_ATTR VkResult VKAPI_CALL create_##Name(                                           \
        VkDevice device, const Info *info, const VkAllocationCallbacks *allocator, Handle *out) {  \
        if (fails("vkCreate" #Name)) return injected;                                              \
        return count(real.vkCreate##Name(device, info, allocator, out));                           \
    }                                                                                              \
    static VKAPI_ATTR void VKAPI_CALL destroy_##Name(VkDevice device, Handle handle,               \
                                                     const VkAllocationCallbacks *allocator) {     \
        uncount(handle != VK_NULL_HANDLE);                                                         \
        real.vkDestroy##Name(device, handle, allocator);                                           \
    }
#define FAULT_CALL(Name, parameters, arguments)                                                    \
    static VKAPI_ATTR VkResult VKAPI_CALL call_##Name parameters {                                 \
        return fails("vk" #Name) ? injected : real.vk##Name arguments;                             \
    }
#include "fault_list.inl"

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device,
                                                      const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkDeviceMemory *out) {
    if (fails("vkAllocateMemory")) return injected;
    return count(real.vkAllocateMemory(device, info, allocator, out));
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory,
                                              const VkAllocationCallbacks *allocator) {
    uncount(memory != VK_NULL_HANDLE);
    real.vkFreeMemory(device, memory, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache,
                                                       uint32_t n,
                                                       const VkComputePipelineCreateInfo *infos,
                                                       const VkAllocationCallbacks *allocator,
                                                       VkPipeline *out) {
    if (fails("vkCreateComputePipelines")) return injected;
    return count(real.vkCreateComputePipelines(device, cache, n, infos, allocator, out));
}

static VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice device, VkPipeline pipeline,
                                                   const VkAllocationCallbacks *allocator) {
    uncount(pipeline != VK_NULL_HANDLE);
    real.vkDestroyPipeline(device, pipeline, allocator);
}

static VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device,
                                                 const VkAllocationCallbacks *allocator) {
    uncount(device != VK_NULL_HANDLE);
    last_device = VK_NULL_HANDLE;
    real.vkDestroyDevice(device, allocator);
}

static void hook_device(struct VolkDeviceTable *api) {
    real = *api;
#define FAULT_CREATE(Name, Info, Handle)                                                           \
    api->vkCreate##Name = create_##Name;                                                           \
    api->vkDestroy##Name = destroy_##Name;
#define FAULT_CALL(Name, parameters, arguments)                                                    \
    if (api->vk##Name) api->vk##Name = call_##Name;
#include "fault_list.inl"
    api->vkAllocateMemory = allocate_memory;
    api->vkFreeMemory = free_memory;
    api->vkCreateComputePipelines = create_pipelines;
    api->vkDestroyPipeline = destroy_pipeline;
    api->vkDestroyDevice = destroy_device;
}

// --- functions of the instance -------------------------------------------------------------------

static PFN_vkCreateInstance real_create_instance;
static PFN_vkDestroyInstance real_destroy_instance;
static PFN_vkEnumeratePhysicalDevices real_enumerate_devices;
static PFN_vkEnumerateDeviceExtensionProperties real_enumerate_extensions;
static PFN_vkCreateDevice real_create_device;

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkInstance *out) {
    if (fails("vkCreateInstance")) return injected;
    return count(real_create_instance(info, allocator, out));
}

static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance,
                                                   const VkAllocationCallbacks *allocator) {
    uncount(instance != VK_NULL_HANDLE);
    real_destroy_instance(instance, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL enumerate_devices(VkInstance instance, uint32_t *n,
                                                        VkPhysicalDevice *out) {
    return fails("vkEnumeratePhysicalDevices") ? injected
                                               : real_enumerate_devices(instance, n, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL enumerate_extensions(VkPhysicalDevice device,
                                                           const char *layer, uint32_t *n,
                                                           VkExtensionProperties *out) {
    return fails("vkEnumerateDeviceExtensionProperties")
               ? injected
               : real_enumerate_extensions(device, layer, n, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                                    const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkDevice *out) {
    if (fails("vkCreateDevice")) return injected;
    const VkResult result = count(real_create_device(physical, info, allocator, out));
    if (result == VK_SUCCESS) last_device = *out;
    return result;
}

// Volk finds the functions anew each time an instance is made.
#define REPLACE(function, real_function, own)                                                      \
    if (function && function != own) {                                                             \
        real_function = function;                                                                  \
        function = own;                                                                            \
    }

static void hook_instance(void) {
    REPLACE(vkCreateInstance, real_create_instance, create_instance)
    REPLACE(vkDestroyInstance, real_destroy_instance, destroy_instance)
    REPLACE(vkEnumeratePhysicalDevices, real_enumerate_devices, enumerate_devices)
    REPLACE(vkEnumerateDeviceExtensionProperties, real_enumerate_extensions, enumerate_extensions)
    REPLACE(vkCreateDevice, real_create_device, create_device)
}

void vulkan_faults_install(void) {
    gvk_loader_set_hooks(hook_instance, hook_device);
}
