// SPDX-License-Identifier: MIT
// One instance per process, made when the first host starts the plugin; volk keeps the functions of
// the instance in globals, those of a device in the context's own table, which saves the loader's
// dispatch on each call. Hooks are for tests, which replace functions to make calls fail.
#define VOLK_IMPLEMENTATION
#include "device/loader.h"

#include <stdio.h>
#include <string.h>

static VkInstance instance;
static VkDebugUtilsMessengerEXT messenger;
static void (*hook_instance)(void);
static void (*hook_device)(struct VolkDeviceTable *api);

void gvk_loader_set_hooks(void (*instance_hook)(void),
                          void (*device_hook)(struct VolkDeviceTable *api)) {
    hook_instance = instance_hook;
    hook_device = device_hook;
}

VkInstance gvk_loader_instance(void) {
    return instance;
}

void gvk_loader_functions(VkDevice device, struct VolkDeviceTable *out_api) {
    volkLoadDeviceTable(out_api, device);
    if (hook_device) hook_device(out_api);
}

// The constant's name, as the driver's documentation has it.
const char *gvk_result_name(VkResult result) {
    switch (result) {
#define RESULT(name)                                                                               \
    case name: return #name
        RESULT(VK_SUCCESS);
        RESULT(VK_NOT_READY);
        RESULT(VK_TIMEOUT);
        RESULT(VK_INCOMPLETE);
        RESULT(VK_ERROR_OUT_OF_HOST_MEMORY);
        RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY);
        RESULT(VK_ERROR_INITIALIZATION_FAILED);
        RESULT(VK_ERROR_DEVICE_LOST);
        RESULT(VK_ERROR_MEMORY_MAP_FAILED);
        RESULT(VK_ERROR_LAYER_NOT_PRESENT);
        RESULT(VK_ERROR_EXTENSION_NOT_PRESENT);
        RESULT(VK_ERROR_FEATURE_NOT_PRESENT);
        RESULT(VK_ERROR_INCOMPATIBLE_DRIVER);
        RESULT(VK_ERROR_TOO_MANY_OBJECTS);
        RESULT(VK_ERROR_FRAGMENTED_POOL);
        RESULT(VK_ERROR_OUT_OF_POOL_MEMORY);
        RESULT(VK_ERROR_INVALID_EXTERNAL_HANDLE);
        RESULT(VK_ERROR_FRAGMENTATION);
#undef RESULT
    default: return "an unknown error";
    }
}

// Out of memory is a status of its own, since the core then tries again with less; a full pool or
// too many objects mean the same to the caller.
enum ggml_status gvk_fail_call(VkResult result, const char *call) {
    switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_TOO_MANY_OBJECTS:
        return gpu_fail_graph(GGML_HOST_OUT_OF_MEMORY,
                              "%s: %s; free buffers or use a smaller model", call,
                              gvk_result_name(result));
    case VK_ERROR_DEVICE_LOST:
        return gpu_fail_graph(GGML_HOST_DEVICE_LOST,
                              "%s: the device is lost; free everything on it and start again",
                              call);
    default:
        return gpu_fail_graph(GGML_HOST_FAILED, "%s: %s (%d); the driver's log may say more", call,
                              gvk_result_name(result), (int)result);
    }
}

// --- instance ------------------------------------------------------------------------------------

// Passes messages of the validation layer to the log; VK_FALSE lets the call go on.
static VKAPI_ATTR VkBool32 VKAPI_CALL log_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                  VkDebugUtilsMessageTypeFlagsEXT types,
                                                  const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                  void *user) {
    const bool error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
    (void)types;
    (void)user;
    ggml_log_internal(error ? GGML_LOG_LEVEL_ERROR : GGML_LOG_LEVEL_WARN,
                      "vulkan: validation: %s\n", data->pMessage);
    return VK_FALSE;
}

static const VkDebugUtilsMessengerCreateInfoEXT messenger_info = {
    .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
    .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
    .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
    .pfnUserCallback = log_message,
};

static const char *const validation_layer = "VK_LAYER_KHRONOS_validation";

// Whether a layer is installed; false also where the loader can't list them.
static bool has_layer(const char *name) {
    VkLayerProperties layers[64];
    uint32_t n = sizeof(layers) / sizeof(layers[0]);
    const VkResult result = vkEnumerateInstanceLayerProperties(&n, layers);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return false;
    for (uint32_t i = 0; i < n; ++i) {
        if (strcmp(layers[i].layerName, name) == 0) return true;
    }
    return false;
}

// INCOMPLETE is accepted: the list is only searched.
static bool has_instance_extension(const char *name) {
    VkExtensionProperties extensions[128];
    uint32_t n = sizeof(extensions) / sizeof(extensions[0]);
    const VkResult result = vkEnumerateInstanceExtensionProperties(NULL, &n, extensions);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return false;
    for (uint32_t i = 0; i < n; ++i) {
        if (strcmp(extensions[i].extensionName, name) == 0) return true;
    }
    return false;
}

// Whether to validate; asked for and possible.
static bool wants_validation(void) {
    const char *value = gpu_config("GGML_VULKAN_VALIDATE");
    if (*value == '\0' || strcmp(value, "0") == 0) return false;
    if (has_layer(validation_layer)) return true;
    GGML_LOG_WARN("vulkan: GGML_VULKAN_VALIDATE is set, but %s is not installed\n",
                  validation_layer);
    return false;
}

// Version 1.2 is all that is needed of the instance; devices may have more. Portability enumeration
// shows layered drivers such as MoltenVK, which are hidden otherwise.
static VkResult create_instance(bool validate) {
    static const VkValidationFeatureEnableEXT more[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    const VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .pNext = &messenger_info,
        .enabledValidationFeatureCount = 1,
        .pEnabledValidationFeatures = more,
    };
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "ggml-host",
        .apiVersion = VK_API_VERSION_1_2,
    };
    const char *extensions[2];
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
        .ppEnabledExtensionNames = extensions,
    };
    if (has_instance_extension("VK_KHR_portability_enumeration")) {
        extensions[info.enabledExtensionCount++] = "VK_KHR_portability_enumeration";
        info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    }
    if (validate) {
        extensions[info.enabledExtensionCount++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
        info.pNext = &features;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = &validation_layer;
    }
    return vkCreateInstance(&info, NULL, &instance);
}

// Opens the Vulkan loader, once per process; false after the error was set. NO_DEVICE, as
// machines without Vulkan are no failure.
static bool find_loader(void) {
    // The library stays open: drivers leave threads' destructors behind.
    if (volkGetInstanceVersion() == 0 && volkInitialize() != VK_SUCCESS) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE,
                      "no Vulkan loader: install libvulkan and the device's driver");
        return false;
    }
    const uint32_t version = volkGetInstanceVersion();
    if (version >= VK_API_VERSION_1_2) return true;
    ggml_sdk_fail(GGML_HOST_NO_DEVICE,
                  "the Vulkan loader is of version %u.%u, 1.2 is needed: update it",
                  VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    return false;
}

// Hooks are called twice: volkLoadInstanceOnly() overwrites the functions that the first call
// replaced. Without a messenger validation goes on silently.
bool gvk_loader_start(void) {
    if (!find_loader()) return false;
    if (hook_instance) hook_instance();
    const bool validate = wants_validation();
    const VkResult result = create_instance(validate);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no Vulkan driver: install that of the device");
        return false;
    }
    if (result != VK_SUCCESS) {
        instance = VK_NULL_HANDLE;
        gvk_fail_call(result, "vkCreateInstance");
        return false;
    }
    volkLoadInstanceOnly(instance);
    if (hook_instance) hook_instance();
    messenger = VK_NULL_HANDLE;
    if (validate &&
        vkCreateDebugUtilsMessengerEXT(instance, &messenger_info, NULL, &messenger) != VK_SUCCESS)
        messenger = VK_NULL_HANDLE;
    return true;
}

// Undoes gvk_loader_start() as far as that came. The instance goes last.
void gvk_loader_stop(void) {
    if (!instance) return;
    if (messenger) vkDestroyDebugUtilsMessengerEXT(instance, messenger, NULL);
    vkDestroyInstance(instance, NULL);
    messenger = VK_NULL_HANDLE;
    instance = VK_NULL_HANDLE;
}
