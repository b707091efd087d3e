// SPDX-License-Identifier: MIT
// The plugin's note and entry. Drivers leave threads behind: it stays mapped.
#include "device/device.h"

static const void *extension(const char *id, uint32_t min_revision) {
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0) return gpu_device_info_extension(min_revision);
    return NULL;
}

GGML_PLUGIN_NOTE("cuda", "", PLUGIN_VERSION, 0, 0, GGML_PLUGIN_FLAG_NO_UNLOAD)
GGML_PLUGIN_ENTRY(cuda_reg_start, NULL, cuda_reg_stop, extension)
