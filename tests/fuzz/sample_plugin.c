// SPDX-License-Identifier: MIT
// A real library with a note, whose image the replay test damages. It is never loaded.
#include "ggml-plugin.h"

GGML_PLUGIN_NOTE("sample", "", "1.0", 0, 0, 0)

GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin);

int32_t ggml_backend_init(const struct ggml_host_table *host,
                          const struct ggml_plugin_table **out_plugin) {
    (void)host;
    *out_plugin = NULL;
    return GGML_HOST_UNSUPPORTED;
}
