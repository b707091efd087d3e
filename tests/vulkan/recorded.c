// SPDX-License-Identifier: MIT
#include "recorded.h"

#include <stdio.h>

struct facts {
    const char *name, *driver, *info;
    VkPhysicalDeviceType type;
    uint32_t version;
    uint32_t subgroup, groups_x, shared, alignment;
    uint64_t range;
    bool fp16, storage8, storage16, int_dot, coopmat;
};

static void fill(struct vk_probe *out_probe, const struct facts *facts) {
    VkPhysicalDeviceLimits *limits = &out_probe->properties.limits;
    memset(out_probe, 0, sizeof(*out_probe));
    snprintf(out_probe->properties.deviceName, VK_MAX_PHYSICAL_DEVICE_NAME_SIZE, "%s", facts->name);
    snprintf(out_probe->driver.driverName, VK_MAX_DRIVER_NAME_SIZE, "%s", facts->driver);
    snprintf(out_probe->driver.driverInfo, VK_MAX_DRIVER_INFO_SIZE, "%s", facts->info);
    out_probe->properties.deviceType = facts->type;
    out_probe->properties.apiVersion = facts->version;
    limits->maxComputeWorkGroupInvocations = 1024;
    limits->maxComputeWorkGroupSize[0] = 1024;
    limits->maxComputeWorkGroupCount[0] = facts->groups_x;
    limits->maxComputeWorkGroupCount[1] = 65535;
    limits->maxComputeWorkGroupCount[2] = 65535;
    limits->maxComputeSharedMemorySize = facts->shared;
    limits->maxStorageBufferRange = (uint32_t)facts->range;
    limits->minStorageBufferOffsetAlignment = facts->alignment;
    limits->maxPerStageDescriptorStorageBuffers = 32;
    out_probe->subgroup.subgroupSize = facts->subgroup;
    out_probe->subgroup.supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    out_probe->subgroup.supportedOperations =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    out_probe->storage16.storageBuffer16BitAccess = facts->storage16;
    out_probe->storage8.storageBuffer8BitAccess = facts->storage8;
    out_probe->float16.shaderFloat16 = facts->fp16;
    out_probe->timeline.timelineSemaphore = VK_TRUE;
    out_probe->has.int_dot = facts->int_dot;
    out_probe->int_dot.integerDotProduct4x8BitPackedSignedAccelerated = facts->int_dot;
    out_probe->has.coopmat = facts->coopmat;
    out_probe->maintenance3.maxMemoryAllocationSize = UINT64_C(4) << 30;
}

static void nvidia_rtx_4090(struct vk_probe *out_probe) {
    const struct facts facts = {"NVIDIA GeForce RTX 4090",
                                "NVIDIA",
                                "535.183.01",
                                VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                                VK_MAKE_API_VERSION(0, 1, 3, 242),
                                32,
                                2147483647,
                                49152,
                                16,
                                UINT32_MAX,
                                true,
                                true,
                                true,
                                true,
                                true};
    fill(out_probe, &facts);
    out_probe->has.pci = true;
    out_probe->pci.pciBus = 1;
}

static void amd_rx_6800(struct vk_probe *out_probe) {
    const struct facts facts = {"AMD Radeon RX 6800 (RADV NAVI21)",
                                "radv",
                                "Mesa 22.3.6",
                                VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                                VK_MAKE_API_VERSION(0, 1, 3, 230),
                                64,
                                UINT32_MAX,
                                65536,
                                4,
                                UINT32_MAX,
                                true,
                                true,
                                true,
                                true,
                                false};
    fill(out_probe, &facts);
    out_probe->has.pci = true;
    out_probe->pci.pciBus = 0x0b;
}

static void intel_uhd_620(struct vk_probe *out_probe) {
    const struct facts facts = {"Intel(R) UHD Graphics 620 (KBL GT2)",
                                "Intel open-source Mesa driver",
                                "Mesa 22.3.6",
                                VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
                                VK_MAKE_API_VERSION(0, 1, 3, 230),
                                32,
                                65535,
                                65536,
                                4,
                                1073741820,
                                true,
                                true,
                                true,
                                false,
                                false};
    fill(out_probe, &facts);
    out_probe->has.pci = true;
    out_probe->pci.pciDevice = 2;
}

static void llvmpipe(struct vk_probe *out_probe) {
    const struct facts facts = {"llvmpipe (LLVM 15.0.6, 256 bits)",
                                "llvmpipe",
                                "Mesa 22.3.6 (LLVM 15.0.6)",
                                VK_PHYSICAL_DEVICE_TYPE_CPU,
                                VK_MAKE_API_VERSION(0, 1, 3, 230),
                                8,
                                65535,
                                32768,
                                16,
                                134217728,
                                true,
                                true,
                                true,
                                false,
                                false};
    static const uint8_t uuid[VK_UUID_SIZE] = "mesa22.3.6";
    fill(out_probe, &facts);
    memcpy(out_probe->id.deviceUUID, uuid, sizeof(uuid));
}

static void arm_mali_g71(struct vk_probe *out_probe) {
    const struct facts facts = {"Mali-G71",
                                "Mali-G71",
                                "r20p0",
                                VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
                                VK_MAKE_API_VERSION(0, 1, 2, 131),
                                4,
                                65535,
                                32768,
                                256,
                                134217728,
                                false,
                                false,
                                true,
                                false,
                                false};
    fill(out_probe, &facts);
}

static void nvidia_gtx_680(struct vk_probe *out_probe) {
    const struct facts facts = {"NVIDIA GeForce GTX 680",
                                "NVIDIA",
                                "470.256.02",
                                VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                                VK_MAKE_API_VERSION(0, 1, 2, 175),
                                32,
                                2147483647,
                                49152,
                                32,
                                UINT32_MAX,
                                false,
                                true,
                                false,
                                false,
                                false};
    fill(out_probe, &facts);
}

static void old_radeon(struct vk_probe *out_probe) {
    const struct facts facts = {"AMD Radeon HD 7700",
                                "amdvlk",
                                "2018",
                                VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                                VK_MAKE_API_VERSION(0, 1, 0, 65),
                                64,
                                65535,
                                32768,
                                4,
                                UINT32_MAX,
                                false,
                                false,
                                false,
                                false,
                                false};
    fill(out_probe, &facts);
}

static void display_only(struct vk_probe *out_probe) {
    nvidia_rtx_4090(out_probe);
    out_probe->queue_family = -1;
}

const struct recorded recorded_devices[] = {
    {"nvidia_rtx_4090", true, "", GGML_BACKEND_DEVICE_TYPE_GPU, "0000:01:00.0", nvidia_rtx_4090},
    {"amd_rx_6800", true, "", GGML_BACKEND_DEVICE_TYPE_GPU, "0000:0b:00.0", amd_rx_6800},
    {"intel_uhd_620", true, "", GGML_BACKEND_DEVICE_TYPE_IGPU, "0000:00:02.0", intel_uhd_620},
    {"llvmpipe", true, "", GGML_BACKEND_DEVICE_TYPE_CPU, "6d657361-3232-2e33-2e36-000000000000",
     llvmpipe},
    {"arm_mali_g71", false, "storageBuffer8BitAccess", GGML_BACKEND_DEVICE_TYPE_IGPU, NULL,
     arm_mali_g71},
    {"nvidia_gtx_680", false, "storageBuffer16BitAccess", GGML_BACKEND_DEVICE_TYPE_GPU, NULL,
     nvidia_gtx_680},
    {"old_radeon", false, "1.2", GGML_BACKEND_DEVICE_TYPE_GPU, NULL, old_radeon},
    {"display_only", false, "queue", GGML_BACKEND_DEVICE_TYPE_GPU, NULL, display_only},
};

const int n_recorded_devices = sizeof(recorded_devices) / sizeof(recorded_devices[0]);
