// SPDX-License-Identifier: MIT
// Inside a plugin: what the host knows of the machine, the plugin's settings and its file.
#include "ggml-plugin.h"

const char *ggml_sdk_config(const char *name) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const char *value = host ? host->get_config(host, name) : NULL;
    ggml_sdk_host_release(host);
    return value;
}

bool ggml_sdk_topology(struct ggml_host_topology *out_topology) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const bool known = host && host->get_topology(host, out_topology) == GGML_HOST_OK;
    ggml_sdk_host_release(host);
    return known;
}

// NULL: a host older than the extension.
static const struct ggml_extension_plugin_path *path_extension(const struct ggml_host_table *host) {
    const struct ggml_extension_plugin_path *path =
        host && host->get_extension ? host->get_extension(host, GGML_EXTENSION_PLUGIN_PATH,
                                                          GGML_EXTENSION_PLUGIN_PATH_REVISION)
                                    : NULL;
    return path && path->size >= sizeof(*path) ? path : NULL;
}

const char *ggml_sdk_plugin_file(void) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_plugin_path *path = path_extension(host);
    const char *file = path ? path->file(host) : NULL;
    ggml_sdk_host_release(host);
    return file;
}

const char *ggml_sdk_plugin_folder(void) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_plugin_path *path = path_extension(host);
    const char *folder = path ? path->folder(host) : NULL;
    ggml_sdk_host_release(host);
    return folder;
}
