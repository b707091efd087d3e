// SPDX-License-Identifier: MIT
// The plugin's note and entry. Drivers leave threads behind: it stays mapped.
#include "device/device.h"
#include "memory/external.h"
#include "queue/comm.h"
#include "queue/profile.h"

static const void *extension(const char *id, uint32_t min_revision) {
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0) return gpu_device_info_extension(min_revision);
    if (strcmp(id, GGML_EXTENSION_PROFILE) == 0)
        return min_revision <= cuda_profile_extension.revision ? &cuda_profile_extension : NULL;
    if (strcmp(id, GGML_EXTENSION_EXTERNAL_MEMORY) == 0)
        return min_revision <= cuda_external_memory.revision ? &cuda_external_memory : NULL;
    if (strcmp(id, GGML_EXTENSION_COMM) == 0)
        return min_revision <= cuda_comm.revision ? &cuda_comm : NULL;
    return NULL;
}

GGML_PLUGIN_NOTE("cuda", "", PLUGIN_VERSION, 0, 0, GGML_PLUGIN_FLAG_NO_UNLOAD)
GGML_PLUGIN_ENTRY(cuda_reg_start, NULL, cuda_reg_stop, extension)
