// SPDX-License-Identifier: MIT
// The plugins that are linked into the library, from the list that the build makes.
#include "plugin/registry/builtin.h"

#define GGML_BUILTIN_ROW(name)                                                                     \
    extern const struct ggml_plugin_note ggml_builtin_note_##name;                                 \
    int32_t ggml_builtin_init_##name(const struct ggml_host_table *host,                           \
                                     const struct ggml_plugin_table **out_plugin);
#include "builtin_list.inl"

static const struct builtin_plugin builtins[] = {
#define GGML_BUILTIN_ROW(name) {&ggml_builtin_note_##name, ggml_builtin_init_##name},
#include "builtin_list.inl"
    {NULL, NULL},
};

const struct builtin_plugin *builtin_plugins(size_t *out_count) {
    // The list ends with an empty row, so that it is valid C without plugins too.
    *out_count = sizeof(builtins) / sizeof(builtins[0]) - 1;
    return builtins;
}
