// SPDX-License-Identifier: MIT
// Details of a device are accepted or rejected as a whole: bounded in number, UTF-8, each name
// once.
#include "plugin/query/details.h"

#include <string.h>

#include "base/data/text.h"
#include "base/status.h"
#include "plugin/load/load.h"
#include "plugin/query/figures.h"
#include "plugin/registry/live.h"

static bool is_text(const char *text) {
    return text && memchr(text, '\0', GGML_DEVICE_INFO_MAX_TEXT) && utf8_valid(text);
}

// O(pairs^2), of which there are a few dozen.
static bool is_sound(const struct ggml_backend_feature *list) {
    for (int i = 0; i <= GGML_DEVICE_INFO_MAX_PAIRS; ++i) {
        if (!list[i].name) return true;
        if (!is_text(list[i].name) || list[i].name[0] == '\0' || !is_text(list[i].value))
            return false;
        for (int j = 0; j < i; ++j)
            if (strcmp(list[i].name, list[j].name) == 0) return false;
    }
    return false;
}

// Calls the plugin.
const struct ggml_backend_feature *plugin_details(const struct host_plugin *plugin,
                                                  ggml_backend_dev_t device) {
    const struct ggml_plugin_table *table = plugin->table;
    const struct ggml_extension_device_info *extension =
        table && table->get_extension ? table->get_extension(table, GGML_EXTENSION_DEVICE_INFO,
                                                             GGML_EXTENSION_DEVICE_INFO_REVISION)
                                      : NULL;
    const bool offered = extension && extension->size >= sizeof(*extension) && extension->info;
    const struct ggml_backend_feature *list = offered ? extension->info(device) : NULL;
    if (!list || is_sound(list)) return list;
    ggml_fail(GGML_HOST_BAD_PLUGIN,
              "plugin '%s': its list of keys and values about a device is too long, has a text "
              "that is missing, too long or not UTF-8, or a key twice",
              plugin->name);
    return NULL;
}

bool details_copy(struct arena *arena, const struct ggml_backend_feature *list,
                  const struct ggml_backend_feature **out_copy) {
    size_t n = 0;
    *out_copy = NULL;
    if (!list) return true;
    while (list[n].name)
        ++n;
    // The list ends with an empty row.
    struct ggml_backend_feature *copy = arena_alloc(arena, (n + 1) * sizeof(*copy));
    for (size_t i = 0; copy && i < n; ++i) {
        copy[i].name = arena_strdup(arena, list[i].name);
        copy[i].value = arena_strdup(arena, list[i].value);
        if (!copy[i].name || !copy[i].value) return false;
    }
    if (copy) copy[n] = (struct ggml_backend_feature){NULL, NULL};
    *out_copy = copy;
    return copy != NULL;
}

// The details of an isolated device come from its plugin in the other process.
const struct ggml_backend_feature *ggml_backend_dev_details(ggml_backend_dev_t device) {
    if (!device) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: device is NULL", __func__);
        return NULL;
    }
    load_builtins_once();
    ggml_backend_dev_t original = figures_original_of(device);
    struct host_plugin *plugin = host_live_hold(original);
    if (!plugin) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: not a registered device", __func__);
        return NULL;
    }
    const struct ggml_backend_feature *list = plugin_details(plugin, original);
    // Ends host_live_hold().
    atomic_fetch_sub(&plugin->live, 1);
    return list;
}
