// SPDX-License-Identifier: MIT
// Vulkan's functions, found when the plugin starts: without a Vulkan loader the plugin still loads.
#ifndef GVK_LOADER_H
#define GVK_LOADER_H

#include <volk.h>

#include "gpu/base/util.h"

// Opens the loader and creates the instance; every instance function is then a global of volk.h.
// False after telling why: no loader, a loader below Vulkan 1.2, no driver. [init]
bool gvk_loader_start(void);
// Destroys the instance. The loader's library stays open. [init]
void gvk_loader_stop(void);
// The instance, or VK_NULL_HANDLE. [any-thread]
VkInstance gvk_loader_instance(void);
// Functions of a device. [any-thread]
void gvk_loader_functions(VkDevice device, struct VolkDeviceTable *out_api);

// For tests: called after functions were found, to put others in their place; the first for those
// that need no device, the second for each device. NULL turns it off. [init]
void gvk_loader_set_hooks(void (*instance_hook)(void),
                          void (*device_hook)(struct VolkDeviceTable *api));

// What Vulkan calls a result ("VK_ERROR_DEVICE_LOST"). [any-thread]
const char *gvk_result_name(VkResult result);
// Tells that a call failed and returns the status of a graph. [any-thread]
enum ggml_status gvk_fail_call(VkResult result, const char *call);

#endif
