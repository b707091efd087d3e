// SPDX-License-Identifier: MIT
// Devices that appear at run time. An announcement only marks the plugin: its devices are listed
// later by the thread that releases the registry's lock, not while it announces them.
#include "plugin/registry/announce.h"

#include "base/env.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "plugin/registry/isolation.h"
#include "plugin/registry/registry.h"

static bool is_dynamic(const struct host_plugin *plugin) {
    return (plugin->flags & GGML_PLUGIN_FLAG_DYNAMIC_DEVICES) != 0;
}

// The flag is required so that a host can know in advance which lists may grow.
enum ggml_host_status announce_devices(struct host_plugin *plugin) {
    if (!is_dynamic(plugin)) {
        return ggml_fail(GGML_HOST_UNSUPPORTED,
                         "plugin '%s' announces devices without GGML_PLUGIN_FLAG_DYNAMIC_DEVICES "
                         "in its note: report it to the plugin's author",
                         plugin->name);
    }
    atomic_store(&plugin->changed, true);
    registry_look_again();
    return GGML_HOST_OK;
}

void announce_mark_all(void) {
    struct host_plugin *plugin;
    bool any = false;
    for (size_t i = 0; (plugin = registry_plugin(i)) != NULL; ++i) {
        if (!is_dynamic(plugin)) continue;
        atomic_store(&plugin->changed, true);
        any = true;
    }
    if (any) registry_look_again();
}

// New devices pass through GGML_DEVICES as those at loading do.
static void hide_unwanted(const struct host_plugin *plugin, struct device_list *list,
                          size_t first) {
    struct arena arena = {0};
    struct device_filter filter;
    const bool known = registry_read_filter(0, &arena, &filter) == GGML_HOST_OK;
    for (size_t i = first; i < list->count; ++i) {
        struct host_device *device = &list->items[i];
        device->hidden =
            !known || !filter_allows_device(&filter, plugin->name, device->name, device->device_id);
    }
    arena_free(&arena);
}

// A bad device is logged and left out; the others are shown.
static bool show_more(struct host_plugin *plugin) {
    struct device_list *now = plugin_devices(plugin);
    struct device_list *list;
    enum ggml_host_status status = plugin_find_more(plugin, &list);
    if (list) {
        hide_unwanted(plugin, list, now->count);
        isolation_apply(plugin, list, now->count);
        plugin_set_devices(plugin, list);
        const enum ggml_host_status shown = registry_refresh();
        if (shown != GGML_HOST_OK) status = shown;
    }
    if (status != GGML_HOST_OK)
        GGML_LOG_WARN("a device of plugin '%s' can't be used: %s\n", plugin->name,
                      ggml_last_error());
    return list != NULL;
}

// With the lock held; the caller repeats it while announcements come in.
bool announce_new_devices(void) {
    bool any = false;
    struct ggml_saved_error saved;
    struct host_plugin *plugin;
    ggml_error_save(&saved);
    for (size_t i = 0; (plugin = registry_plugin(i)) != NULL; ++i) {
        if (atomic_exchange(&plugin->changed, false)) any |= show_more(plugin);
    }
    ggml_error_restore(&saved);
    return any;
}
