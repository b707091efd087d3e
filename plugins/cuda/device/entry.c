// SPDX-License-Identifier: MIT
// The plugin's note and entry. Drivers leave threads behind: it stays mapped.
#include "device/device.h"

static const struct ggml_backend_feature *device_info(ggml_backend_dev_t device) {
    return cuda_device_of(device)->details;
}

static const void *extension(const char *id, uint32_t min_revision) {
    static const struct ggml_extension_device_info info = {
        .size = sizeof(info), .revision = GGML_EXTENSION_DEVICE_INFO_REVISION, .info = device_info};
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0)
        return min_revision <= info.revision ? &info : NULL;
    return NULL;
}

GGML_PLUGIN_NOTE("cuda", "", PLUGIN_VERSION, 0, 0, GGML_PLUGIN_FLAG_NO_UNLOAD)
GGML_PLUGIN_ENTRY(cuda_reg_start, NULL, cuda_reg_stop, extension)
