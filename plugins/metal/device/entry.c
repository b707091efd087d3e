// SPDX-License-Identifier: MIT
// The plugin's note and entry. Frameworks stay mapped, and so does the plugin.
#include "device/device.h"

static const struct ggml_backend_feature *device_info(ggml_backend_dev_t device) {
    return metal_device_of(device)->details;
}

// The extensions of the contract that this plugin has.
static const void *extension(const char *id, uint32_t min_revision) {
    static const struct ggml_extension_device_info info = {
        .size = sizeof(info), .revision = GGML_EXTENSION_DEVICE_INFO_REVISION, .info = device_info};
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0)
        return min_revision <= info.revision ? &info : NULL;
    return NULL;
}

GGML_PLUGIN_NOTE("metal", "", PLUGIN_VERSION, 0, 0, GGML_PLUGIN_FLAG_NO_UNLOAD)
GGML_PLUGIN_ENTRY(metal_reg_start, NULL, metal_reg_stop, extension)
