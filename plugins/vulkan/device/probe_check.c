// SPDX-License-Identifier: MIT
// What follows from a probe.
#include <stdio.h>

#include "device/probe.h"

// Mesa's lavapipe leaves every loop after 65,535 iterations of all loops of an invocation together
// (Mesa 22.3; later releases don't), silently. Some are left for small loops that are not counted.
enum { LAVAPIPE_ITERATIONS = 65535 - 1023 };

// Why the device can't be used, or NULL.
static const char *reason_against(const struct gvk_probe *probe) {
    if (probe->properties.apiVersion < VK_API_VERSION_1_2) return "its driver is below Vulkan 1.2";
    if (probe->queue_family < 0) return "it has no queue that computes";
    if (!probe->storage16.storageBuffer16BitAccess) return "it lacks storageBuffer16BitAccess";
    if (!probe->storage8.storageBuffer8BitAccess) return "it lacks storageBuffer8BitAccess";
    if (!probe->timeline.timelineSemaphore) return "it lacks timeline semaphores";
    if (probe->properties.limits.maxPerStageDescriptorStorageBuffers < GVK_MAX_OPERANDS)
        return "it takes too few storage buffers";
    return NULL;
}

// Whether the device can run the plugin's shaders, and which optional features they may use;
// otherwise the reason why not.
bool gvk_probe_check(const struct gvk_probe *probe, struct gvk_features *out_features,
                     char out_reason[GVK_MAX_REASON]) {
    const VkPhysicalDeviceLimits *limits = &probe->properties.limits;
    const char *reason = reason_against(probe);
    const VkSubgroupFeatureFlags wanted =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    memset(out_features, 0, sizeof(*out_features));
    snprintf(out_reason, GVK_MAX_REASON, "%s", reason ? reason : "");
    if (reason) return false;
    *out_features = (struct gvk_features){
        .fp16 = probe->float16.shaderFloat16,
        .bf16 = probe->has.bf16,
        // Only accelerated products: an emulated one is slower than unpacking to floats.
        .int_dot =
            probe->has.int_dot && probe->int_dot.integerDotProduct4x8BitPackedSignedAccelerated,
        .coopmat = probe->has.coopmat && probe->float16.shaderFloat16,
        .subgroup_arithmetic =
            (probe->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
            (probe->subgroup.supportedOperations & wanted) == wanted,
        .cpu = probe->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU,
        .subgroup_size = probe->subgroup.subgroupSize,
        .max_group_size =
            MIN(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]),
        .max_groups = {limits->maxComputeWorkGroupCount[0], limits->maxComputeWorkGroupCount[1],
                       limits->maxComputeWorkGroupCount[2]},
        .max_shared_bytes = limits->maxComputeSharedMemorySize,
        .max_range_bytes = limits->maxStorageBufferRange,
        // At least 16 bytes, since shaders read vectors of four floats.
        .min_storage_alignment = (uint32_t)MAX(16, limits->minStorageBufferOffsetAlignment),
        // lavapipe stops a shader after a number of loop iterations: longer work is cut into
        // several launches.
        .max_iterations =
            probe->driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE ? LAVAPIPE_ITERATIONS : 0,
    };
    return true;
}

// A virtual GPU counts as discrete: it has memory of its own as far as the guest can tell.
enum ggml_backend_dev_type gvk_probe_type(const struct gvk_probe *probe) {
    switch (probe->properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return GGML_BACKEND_DEVICE_TYPE_GPU;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return GGML_BACKEND_DEVICE_TYPE_IGPU;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return GGML_BACKEND_DEVICE_TYPE_CPU;
    default: return GGML_BACKEND_DEVICE_TYPE_ACCEL;
    }
}

// Discrete ones first: programs take the first device by default.
int gvk_probe_rank(const struct gvk_probe *probe) {
    switch (probe->properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_OTHER: return 3;
    default: return 4;
    }
}

// By the kind of device: memory types alone would take a discrete GPU whose memory is all visible
// to the host (resizable BAR) for one that shares it.
bool gvk_probe_unified(const struct gvk_probe *probe) {
    return probe->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
           probe->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

// The PCI address is the same in all drivers, so that the host can tell that two plugins offer the
// same GPU; the UUID is the driver's own.
void gvk_probe_id(const struct gvk_probe *probe, char *out_text, size_t size) {
    const uint8_t *u = probe->id.deviceUUID;
    if (probe->has.pci) {
        snprintf(out_text, size, "%04x:%02x:%02x.%x", probe->pci.pciDomain, probe->pci.pciBus,
                 probe->pci.pciDevice, probe->pci.pciFunction);
        return;
    }
    snprintf(out_text, size, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

// Name, driver and driver version; says so if the device is the CPU in disguise.
void gvk_probe_description(const struct gvk_probe *probe, char *out_text, size_t size) {
    const bool cpu = probe->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    snprintf(out_text, size, "%s (%s%s%s%s)", probe->properties.deviceName,
             probe->driver.driverName, probe->driver.driverInfo[0] ? " " : "",
             probe->driver.driverInfo, cpu ? ", computes on the CPU" : "");
}
