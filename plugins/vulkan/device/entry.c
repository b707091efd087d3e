// SPDX-License-Identifier: MIT
// The plugin's note and entry. Drivers leave destructors of threads behind: it stays mapped.
#include <string.h>

#include "device/device.h"
#include "ggml-plugin.h"
#include "memory/external.h"
#include "queue/profile.h"

// Extensions of the contract that this plugin offers, by name and least revision.
static const void *extension(const char *id, uint32_t min_revision) {
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0) return gpu_device_info_extension(min_revision);
    if (strcmp(id, GGML_EXTENSION_PROFILE) == 0)
        return min_revision <= gvk_profile_extension.revision ? &gvk_profile_extension : NULL;
// The descriptors of Windows are handles, which the extension doesn't describe.
#ifndef _WIN32
    if (strcmp(id, GGML_EXTENSION_EXTERNAL_MEMORY) == 0)
        return min_revision <= gvk_external_memory.revision ? &gvk_external_memory : NULL;
#endif
    return NULL;
}

GGML_PLUGIN_NOTE("vulkan", "", PLUGIN_VERSION, 0, 0, GGML_PLUGIN_FLAG_NO_UNLOAD)
GGML_PLUGIN_ENTRY(gvk_reg_start, NULL, gvk_reg_stop, extension)
