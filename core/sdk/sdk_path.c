// SPDX-License-Identifier: MIT
// Inside a plugin: path of the plugin's file and folder, from the host.
#include "ggml-plugin.h"

// NULL: a host older than the extension.
static const struct ggml_extension_plugin_path *path_extension(const struct ggml_host_table *host) {
    const struct ggml_extension_plugin_path *path =
        host && host->get_extension ? host->get_extension(host, GGML_EXTENSION_PLUGIN_PATH,
                                                          GGML_EXTENSION_PLUGIN_PATH_REVISION)
                                    : NULL;
    return path && path->size >= sizeof(*path) ? path : NULL;
}

const char *ggml_sdk_plugin_file(void) {
    const struct ggml_host_table *host = ggml_sdk_host();
    const struct ggml_extension_plugin_path *path = path_extension(host);
    return path ? path->file(host) : NULL;
}

const char *ggml_sdk_plugin_folder(void) {
    const struct ggml_host_table *host = ggml_sdk_host();
    const struct ggml_extension_plugin_path *path = path_extension(host);
    return path ? path->folder(host) : NULL;
}
