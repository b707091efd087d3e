// SPDX-License-Identifier: MIT
// What there is to know about a device beyond its properties (extension "ggml.device-info").
#include <stdio.h>
#include <string.h>

#include "device/device.h"

static void add_version(struct gpu_details *details, const char *key, uint32_t version) {
    gpu_details_add(details, key, "%u.%u.%u", VK_API_VERSION_MAJOR(version),
                    VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
}

// Only Linux tells; -1 there for a machine with one node.
static int numa_node(const char *pci_address) {
    char path[96];
    int node = -1;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.12s/numa_node", pci_address);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    if (fscanf(file, "%d", &node) != 1) node = -1;
    fclose(file);
    return node;
}

// Lists what Vulkan tells about a device; the PCI link and the NUMA node only where the driver
// reports the address.
void gvk_details_fill(struct gpu_details *out_details, const struct gvk_probe *probe) {
    const VkPhysicalDeviceProperties *properties = &probe->properties;
    char id[64];
    memset(out_details, 0, sizeof(*out_details));
    gpu_details_add(out_details, "driver", "%.100s", probe->driver.driverName);
    if (probe->driver.driverInfo[0] != '\0')
        // Some drivers have no text: then the number, whose layout is the vendor's.
        gpu_details_add(out_details, "driver-version", "%.100s", probe->driver.driverInfo);
    else
        gpu_details_add(out_details, "driver-version", "%u", properties->driverVersion);
    add_version(out_details, "api-version", properties->apiVersion);
    gpu_details_add(out_details, "unified-memory", "%s", gvk_probe_unified(probe) ? "yes" : "no");
    if (!probe->has.pci) return;
    gvk_probe_id(probe, id, sizeof(id));
    gpu_details_add(out_details, "link", "pci");
    const int node = numa_node(id);
    if (node >= 0) gpu_details_add(out_details, "numa-node", "%d", node);
}
