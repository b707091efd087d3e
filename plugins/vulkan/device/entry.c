// SPDX-License-Identifier: MIT
// The plugin's note and entry. Drivers leave destructors of threads behind: it stays mapped.
#include <string.h>

#include "device/device.h"
#include "ggml-plugin.h"
#include "memory/external.h"

static const struct ggml_backend_feature *device_info(ggml_backend_dev_t device) {
    return vk_device_of(device)->details.list;
}

static const void *extension(const char *id, uint32_t min_revision) {
    static const struct ggml_extension_device_info info = {
        .size = sizeof(info), .revision = GGML_EXTENSION_DEVICE_INFO_REVISION, .info = device_info};
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0)
        return min_revision <= info.revision ? &info : NULL;
#ifndef _WIN32
    if (strcmp(id, GGML_EXTENSION_EXTERNAL_MEMORY) == 0)
        return min_revision <= vk_external_memory.revision ? &vk_external_memory : NULL;
#endif
    return NULL;
}

GGML_PLUGIN_NOTE("vulkan", "", PLUGIN_VERSION, 0, 0, GGML_PLUGIN_FLAG_NO_UNLOAD)
GGML_PLUGIN_ENTRY(vk_reg_start, NULL, vk_reg_stop, extension)
