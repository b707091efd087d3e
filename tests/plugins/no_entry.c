// SPDX-License-Identifier: MIT
// A plugin with a note and no entry point.
#include "ggml-plugin.h"

GGML_PLUGIN_NOTE("no_entry", "", "1.0", 0, 0, 0)
