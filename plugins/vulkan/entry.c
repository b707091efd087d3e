// SPDX-License-Identifier: MIT
// The plugin's note and entry. Drivers leave destructors of threads behind: it stays mapped.
#include "device.h"

GGML_PLUGIN_NOTE("vulkan", "", PLUGIN_VERSION, 0, 0, GGML_PLUGIN_FLAG_NO_UNLOAD)
GGML_PLUGIN_ENTRY(vk_reg_start, NULL, vk_reg_stop, NULL)
