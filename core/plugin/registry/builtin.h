// SPDX-License-Identifier: MIT
// Plugins that are linked into the library.
#ifndef GGML_PLUGIN_REGISTRY_BUILTIN_H
#define GGML_PLUGIN_REGISTRY_BUILTIN_H

#include <stddef.h>

#include "ggml-plugin.h"

struct builtin_plugin {
    const struct ggml_plugin_note *note;
    ggml_plugin_init_t init;
};

// Constant table. [any-thread]
const struct builtin_plugin *builtin_plugins(size_t *out_count);

#endif
