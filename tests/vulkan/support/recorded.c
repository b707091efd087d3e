// SPDX-License-Identifier: MIT
// A table of recorded devices' properties, and the features that the plugin derives from them.
#include "recorded.h"

#include <stdio.h>

void recorded_probe(const struct recorded *recorded, struct gvk_probe *out_probe) {
    VkPhysicalDeviceLimits *limits = &out_probe->properties.limits;
    memset(out_probe, 0, sizeof(*out_probe));
    snprintf(out_probe->properties.deviceName, VK_MAX_PHYSICAL_DEVICE_NAME_SIZE, "%s",
             recorded->device);
    snprintf(out_probe->driver.driverName, VK_MAX_DRIVER_NAME_SIZE, "%s", recorded->driver);
    snprintf(out_probe->driver.driverInfo, VK_MAX_DRIVER_INFO_SIZE, "%s", recorded->info);
    out_probe->properties.deviceType = recorded->device_type;
    out_probe->properties.apiVersion = recorded->version;
    limits->maxComputeWorkGroupInvocations = 1024;
    limits->maxComputeWorkGroupSize[0] = 1024;
    limits->maxComputeWorkGroupCount[0] = recorded->groups_x;
    limits->maxComputeWorkGroupCount[1] = 65535;
    limits->maxComputeWorkGroupCount[2] = 65535;
    limits->maxComputeSharedMemorySize = recorded->shared;
    limits->maxStorageBufferRange = recorded->range;
    limits->minStorageBufferOffsetAlignment = recorded->alignment;
    limits->maxPerStageDescriptorStorageBuffers = 32;
    out_probe->subgroup.subgroupSize = recorded->subgroup;
    out_probe->subgroup.supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    out_probe->subgroup.supportedOperations =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    out_probe->storage16.storageBuffer16BitAccess = recorded->storage16;
    out_probe->storage8.storageBuffer8BitAccess = recorded->storage8;
    out_probe->float16.shaderFloat16 = recorded->fp16;
    out_probe->timeline.timelineSemaphore = VK_TRUE;
    out_probe->has.int_dot = recorded->int_dot;
    out_probe->int_dot.integerDotProduct4x8BitPackedSignedAccelerated = recorded->int_dot;
    out_probe->has.coopmat = recorded->coopmat;
    out_probe->has.pci = recorded->pci;
    out_probe->pci.pciBus = recorded->pci_bus;
    out_probe->pci.pciDevice = recorded->pci_device;
    if (recorded->uuid) memcpy(out_probe->id.deviceUUID, recorded->uuid, strlen(recorded->uuid));
    if (!recorded->queue) out_probe->queue_family = -1;
    out_probe->maintenance3.maxMemoryAllocationSize = UINT64_C(4) << 30;
}

const struct recorded recorded_devices[] = {
#define RECORDED(name_, usable_, reason_, type_, id_, ...)                                         \
    {.name = #name_,                                                                               \
     .usable = usable_,                                                                            \
     .reason = reason_,                                                                            \
     .type = GGML_BACKEND_DEVICE_TYPE_##type_,                                                     \
     .id = id_,                                                                                    \
     __VA_ARGS__},
#include "recorded_list.inl"
};

const int n_recorded_devices = sizeof(recorded_devices) / sizeof(recorded_devices[0]);

struct gvk_features recorded_features(const char *name) {
    struct gvk_features features = {0};
    for (int i = 0; i < n_recorded_devices; ++i) {
        struct gvk_probe probe;
        char reason[GVK_MAX_REASON];
        if (strcmp(recorded_devices[i].name, name) != 0) continue;
        recorded_probe(&recorded_devices[i], &probe);
        gvk_probe_check(&probe, &features, reason);
    }
    return features;
}
