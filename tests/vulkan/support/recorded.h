// SPDX-License-Identifier: MIT
// What real devices say of themselves, as far as choices depend on it.
#ifndef VULKAN_RECORDED_H
#define VULKAN_RECORDED_H

#include "device/probe.h"

struct recorded {
    const char *name;
    bool usable;
    const char *reason; // part of it, if not
    enum ggml_backend_dev_type type;
    const char *id;
    // What the driver reports.
    const char *device, *driver, *info;
    VkPhysicalDeviceType device_type;
    uint32_t version;
    uint32_t subgroup, groups_x, shared, alignment;
    uint32_t range;
    bool fp16, storage8, storage16, int_dot, coopmat, pci, queue;
    uint32_t pci_bus, pci_device;
    const char *uuid;
};

extern const struct recorded recorded_devices[];
extern const int n_recorded_devices;

// What probing this device finds.
void recorded_probe(const struct recorded *recorded, struct gvk_probe *out_probe);
// What kernels are chosen by on the usable device of that name.
struct gvk_features recorded_features(const char *name);

#endif
