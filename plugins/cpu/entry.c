// SPDX-License-Identifier: MIT
// The plugin's note and entry. It needs nothing of the CPU itself: levels are chosen when it runs.
#include "ggml-plugin.h"

#include "device.h"

GGML_PLUGIN_NOTE("cpu", "", PLUGIN_VERSION, 0, 0, 0)
GGML_PLUGIN_ENTRY(cpu_reg, NULL, cpu_shutdown, NULL)
