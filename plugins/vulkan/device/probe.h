// SPDX-License-Identifier: MIT
// What a physical device says of itself, and what follows from it. The first needs a driver, the
// second doesn't, so that devices which are not at hand can be tested from a recording.
#ifndef GVK_PROBE_H
#define GVK_PROBE_H

#include "device/loader.h"
#include "plan/kernel.h"

struct gvk_probe {
    // As the driver reports them; the pNext members are NULL.
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceDriverProperties driver;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceSubgroupProperties subgroup;
    VkPhysicalDeviceMaintenance3Properties maintenance3;
    VkPhysicalDeviceFeatures base;
    VkPhysicalDevice16BitStorageFeatures storage16;
    VkPhysicalDevice8BitStorageFeatures storage8;
    VkPhysicalDeviceShaderFloat16Int8Features float16;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceMemoryProperties memory;
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci;               // valid if has.pci
    VkPhysicalDeviceShaderIntegerDotProductProperties int_dot; // valid if has.int_dot
    uint64_t host_pointer_alignment;                           // valid if has.host_pointer
    int32_t queue_family;    // that computes and is to be used, -1: none
    uint32_t n_queues;       // of that family
    uint32_t timestamp_bits; // that count in its timestamps, 0: it writes none
    struct {
        bool pci;
        bool memory_budget;
        bool host_pointer;
        bool memory_fd;
        bool int_dot;
        bool coopmat;
        bool bf16;
        bool portability;
    } has;
};

enum { GVK_MAX_REASON = 128 };

// Asks the driver. False: it did not answer. [any-thread]
bool gvk_probe_read(VkPhysicalDevice device, struct gvk_probe *out_probe);
// Whether the device can be used. If so, fills the features, else the reason.
bool gvk_probe_check(const struct gvk_probe *probe, struct gvk_features *out_features,
                     char out_reason[GVK_MAX_REASON]);
// What the host takes the device for. A driver that computes on the CPU is an accelerator, so that
// no program takes it for the best device.
enum ggml_backend_dev_type gvk_probe_type(const struct gvk_probe *probe);
// Rank for listing: discrete devices first, those on the CPU last.
int gvk_probe_rank(const struct gvk_probe *probe);
// Whether the host's memory is the device's.
bool gvk_probe_unified(const struct gvk_probe *probe);
// PCI address or UUID.
void gvk_probe_id(const struct gvk_probe *probe, char *out_text, size_t size);
// Name, driver and version for people.
void gvk_probe_description(const struct gvk_probe *probe, char *out_text, size_t size);

#endif
