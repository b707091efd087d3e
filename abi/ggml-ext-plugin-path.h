// SPDX-License-Identifier: MIT
// ggml-ext-plugin-path.h: extension "ggml.plugin-path", which the host offers: where a plugin lies.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_PLUGIN_PATH_H
#define GGML_EXT_PLUGIN_PATH_H

#include <stdint.h>

#include "ggml-plugin-host.h"

#ifdef __cplusplus
extern "C" {
#endif

// Extension "ggml.plugin-path", revision 1: where a plugin's own file lies, for data that is
// installed beside it. Missing in a plugin that is linked into the host.
#define GGML_EXTENSION_PLUGIN_PATH "ggml.plugin-path"
#define GGML_EXTENSION_PLUGIN_PATH_REVISION 1
struct ggml_extension_plugin_path {
    uint32_t size;
    uint32_t revision;
    // Absolute path of the file that this plugin was loaded from, and of the folder it lies in, as
    // the host found them: links are not resolved, and the file need not be what is mapped, which
    // may be a copy in memory. Valid until shutdown returns. [any-thread]
    const char *(*file)(const struct ggml_host_table *host);
    const char *(*folder)(const struct ggml_host_table *host);
};

#ifdef __cplusplus
}
#endif

#endif
