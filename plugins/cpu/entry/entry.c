// SPDX-License-Identifier: MIT
// The plugin's note and entry. It needs nothing of the CPU itself: levels are chosen when it runs.
#include <string.h>

#include "ggml-plugin.h"

#include "entry/comm.h"
#include "entry/details.h"
#include "runtime/device.h"
#include "runtime/profile.h"

// A host asks for the least revision that it can use; a newer one contains the older ones.
static const void *extension(const char *id, uint32_t min_revision) {
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0)
        return min_revision <= cpu_device_info.revision ? &cpu_device_info : NULL;
    if (strcmp(id, GGML_EXTENSION_COMM) == 0)
        return min_revision <= cpu_comm.revision ? &cpu_comm : NULL;
    if (strcmp(id, GGML_EXTENSION_PROFILE) == 0)
        return min_revision <= cpu_profile_extension.revision ? &cpu_profile_extension : NULL;
    return NULL;
}

GGML_PLUGIN_NOTE("cpu", "", PLUGIN_VERSION, 0, 0, 0)
GGML_PLUGIN_ENTRY(cpu_reg, NULL, cpu_shutdown, extension)
