// SPDX-License-Identifier: MIT
// All that is asked of a physical device, in one place, so that tests can put recordings in its
// stead. Structures of extensions are chained only where the device has them, as Vulkan demands.
// The chains are cut afterwards, since the probe is copied.
#include "device/probe.h"

// Linear: a few hundred names at most, looked through eight times at start.
static bool has_extension(const VkExtensionProperties *extensions, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; ++i) {
        if (strcmp(extensions[i].extensionName, name) == 0) return true;
    }
    return false;
}

// Notes which of the extensions that the plugin can use the device has; false if they can't be
// listed.
static bool read_extensions(VkPhysicalDevice device, struct gvk_probe *probe) {
    uint32_t n = 0;
    if (vkEnumerateDeviceExtensionProperties(device, NULL, &n, NULL) != VK_SUCCESS) return false;
    const size_t size = (n + 1) * sizeof(VkExtensionProperties);
    VkExtensionProperties *list = ggml_aligned_malloc(size);
    if (!list) return false;
    const bool ok = vkEnumerateDeviceExtensionProperties(device, NULL, &n, list) == VK_SUCCESS;
    if (ok) {
        const bool v13 = probe->properties.apiVersion >= VK_API_VERSION_1_3;
        probe->has.pci = has_extension(list, n, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
        probe->has.memory_budget = has_extension(list, n, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
        probe->has.host_pointer =
            has_extension(list, n, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
        probe->has.memory_fd = has_extension(list, n, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
        probe->has.int_dot =
            v13 || has_extension(list, n, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
        probe->has.coopmat = has_extension(list, n, VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME);
        probe->has.bf16 = has_extension(list, n, "VK_KHR_shader_bfloat16");
        probe->has.portability = has_extension(list, n, "VK_KHR_portability_subset");
    }
    ggml_aligned_free(list, size);
    return ok;
}

// Reads all properties by one chained call.
static void read_properties(VkPhysicalDevice device, struct gvk_probe *probe) {
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host_pointer = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &probe->driver};
    probe->driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    probe->driver.pNext = &probe->id;
    probe->id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    probe->id.pNext = &probe->subgroup;
    probe->subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    probe->subgroup.pNext = &probe->maintenance3;
    probe->maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    void **last = &probe->maintenance3.pNext;
    if (probe->has.pci) {
        probe->pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
        *last = &probe->pci;
        last = &probe->pci.pNext;
    }
    if (probe->has.int_dot) {
        probe->int_dot.sType =
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES;
        *last = &probe->int_dot;
        last = &probe->int_dot.pNext;
    }
    if (probe->has.host_pointer) *last = &host_pointer;
    vkGetPhysicalDeviceProperties2(device, &properties);
    probe->host_pointer_alignment = host_pointer.minImportedHostPointerAlignment;
    probe->driver.pNext = probe->id.pNext = probe->subgroup.pNext = NULL;
    probe->maintenance3.pNext = probe->pci.pNext = probe->int_dot.pNext = NULL;
}

// Reads all features by one chained call.
static void read_features(VkPhysicalDevice device, struct gvk_probe *probe) {
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &probe->storage16};
    probe->storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
    probe->storage16.pNext = &probe->storage8;
    probe->storage8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
    probe->storage8.pNext = &probe->float16;
    probe->float16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    probe->float16.pNext = &probe->timeline;
    probe->timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    vkGetPhysicalDeviceFeatures2(device, &features);
    probe->base = features.features;
    probe->storage16.pNext = probe->storage8.pNext = probe->float16.pNext = NULL;
}

// A family that only computes leaves the one that draws to others.
static void read_queues(VkPhysicalDevice device, struct gvk_probe *probe) {
    VkQueueFamilyProperties families[16];
    uint32_t n = sizeof(families) / sizeof(families[0]);
    vkGetPhysicalDeviceQueueFamilyProperties(device, &n, families);
    probe->queue_family = -1;
    for (uint32_t i = 0; i < n; ++i) {
        const bool computes = (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
        const bool draws = (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
        if (!computes || families[i].queueCount == 0) continue;
        if (probe->queue_family >= 0 && draws) continue;
        probe->queue_family = (int32_t)i;
        probe->n_queues = families[i].queueCount;
        probe->timestamp_bits = families[i].timestampValidBits;
        if (!draws) break;
    }
}

// A device below 1.2 has no more to say: it will be declined for that.
bool gvk_probe_read(VkPhysicalDevice device, struct gvk_probe *out_probe) {
    memset(out_probe, 0, sizeof(*out_probe));
    out_probe->queue_family = -1;
    vkGetPhysicalDeviceProperties(device, &out_probe->properties);
    if (out_probe->properties.apiVersion < VK_API_VERSION_1_2) return true;
    if (!read_extensions(device, out_probe)) return false;
    read_properties(device, out_probe);
    read_features(device, out_probe);
    read_queues(device, out_probe);
    vkGetPhysicalDeviceMemoryProperties(device, &out_probe->memory);
    return true;
}
