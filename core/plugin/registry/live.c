// SPDX-License-Identifier: MIT
// Use counts of plugins, found by device. The search in the snapshot is linear, as devices are few;
// counting takes no lock.
#include "plugin/registry/live.h"

#include "plugin/registry/snapshot.h"

static struct host_plugin *find_plugin(const struct snapshot *snapshot, ggml_backend_dev_t device) {
    for (size_t i = 0; i < snapshot->n_plugins; ++i) {
        struct host_plugin *plugin = snapshot->plugins[i];
        const struct device_list *list = plugin_devices(plugin);
        for (size_t j = 0; j < list->count; ++j) {
            if (host_device_is(&list->items[j], device)) return plugin;
        }
    }
    return NULL;
}

// (size_t)-1 subtracts: unsigned arithmetic wraps.
static void count(ggml_backend_dev_t device, size_t change) {
    unsigned section;
    if (!device) return;
    const struct snapshot *snapshot = snapshot_enter(&section);
    struct host_plugin *plugin = find_plugin(snapshot, device);
    if (plugin) atomic_fetch_add(&plugin->live, change);
    snapshot_leave(section);
}

void host_live_add(ggml_backend_dev_t device) {
    count(device, 1);
}

void host_live_remove(ggml_backend_dev_t device) {
    count(device, (size_t)-1);
}

struct host_plugin *host_live_hold(ggml_backend_dev_t device) {
    unsigned section;
    struct host_plugin *plugin = find_plugin(snapshot_enter(&section), device);
    if (plugin) atomic_fetch_add(&plugin->live, 1);
    snapshot_leave(section);
    return plugin;
}

int host_device_minor(ggml_backend_dev_t device) {
    unsigned section;
    const struct snapshot *snapshot = snapshot_enter(&section);
    const struct host_plugin *plugin = find_plugin(snapshot, device);
    const int minor = plugin ? plugin->contract_minor : GGML_CONTRACT_MINOR;
    snapshot_leave(section);
    return minor;
}
