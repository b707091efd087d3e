// SPDX-License-Identifier: MIT
// Performance figures of devices and of the links between them, as their plugins declare them.
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/status.h"
#include "ggml-backend-impl.h"
#include "plugin/load/load.h"
#include "plugin/query/figures.h"
#include "plugin/registry/live.h"
#include "plugin/registry/plugin.h"

// Set by core/isolate, a layer above this folder.
static ggml_backend_dev_t (*_Atomic stand_in)(ggml_backend_dev_t device);

void figures_set_stand_in(ggml_backend_dev_t (*original_of)(ggml_backend_dev_t device)) {
    atomic_store(&stand_in, original_of);
}

ggml_backend_dev_t figures_original_of(ggml_backend_dev_t device) {
    ggml_backend_dev_t (*ask)(ggml_backend_dev_t) = atomic_load(&stand_in);
    ggml_backend_dev_t original = ask ? ask(device) : NULL;
    return original ? original : device;
}

// NULL: the plugin doesn't offer the extension in this revision, of which a table has that size.
static const struct ggml_extension_device_figures *extension_of(const struct host_plugin *plugin,
                                                                uint32_t revision, size_t size) {
    if (!plugin->table || !plugin->table->get_extension) return NULL;
    const struct ggml_extension_device_figures *extension =
        plugin->table->get_extension(plugin->table, GGML_EXTENSION_DEVICE_FIGURES, revision);
    return extension && extension->size >= size ? extension : NULL;
}

// Clears all but the size, which is the caller's.
static void clear(struct ggml_device_figures *figures) {
    const uint32_t size = figures->size;
    memset(figures, 0, size);
    figures->size = size;
}

enum ggml_host_status ggml_backend_dev_figures(ggml_backend_dev_t device,
                                               struct ggml_device_figures *out_figures) {
    if (!device || !out_figures ||
        out_figures->size < offsetof(struct ggml_device_figures, flops_of)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "%s: device or out_figures is NULL, or out_figures->size is not set",
                         __func__);
    }
    clear(out_figures);
    ggml_backend_dev_t original = figures_original_of(device);
    load_builtins_once();
    struct host_plugin *plugin = host_live_hold(original);
    if (!plugin) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: not a registered device", __func__);
    }
    // Revision and size are checked before the entry is called.
    const struct ggml_extension_device_figures *extension =
        extension_of(plugin, 1, offsetof(struct ggml_extension_device_figures, link));
    const uint32_t size = out_figures->size;
    const int32_t status =
        extension ? extension->figures(original, out_figures) : GGML_HOST_UNSUPPORTED;
    out_figures->size = size;
    // A copy of an isolated device goes through the other process.
    if (original != device) out_figures->flags &= ~(uint32_t)GGML_DEVICE_FIGURES_DIRECT_COPY;
    const char *name = device->table->get_name(device);
    enum ggml_host_status result = GGML_HOST_OK;
    if (status != GGML_HOST_OK) {
        clear(out_figures);
        result = ggml_fail(GGML_HOST_UNSUPPORTED,
                           "%s: the plugin of %s declares no figures; measure them with "
                           "ggml-bench figures",
                           __func__, name ? name : "the device");
    }
    atomic_fetch_sub(&plugin->live, 1);
    return result;
}

// --- links

static void clear_link(struct ggml_device_link *link) {
    const uint32_t size = link->size;
    memset(link, 0, size);
    link->size = size;
}

// A time and a rate that can be reckoned with.
static bool is_sound(const struct ggml_device_link *link) {
    return isfinite(link->seconds) && link->seconds >= 0 && isfinite(link->bytes_per_second) &&
           link->bytes_per_second > 0;
}

// Calls the plugin of both devices.
static enum ggml_host_status ask_link(const struct host_plugin *plugin, ggml_backend_dev_t from,
                                      ggml_backend_dev_t to, struct ggml_device_link *out_link) {
    const struct ggml_extension_device_figures *extension =
        extension_of(plugin, 2, sizeof(struct ggml_extension_device_figures));
    const uint32_t size = out_link->size;
    if (!extension || !extension->link) {
        return ggml_fail(GGML_HOST_UNSUPPORTED,
                         "ggml_backend_dev_link: plugin '%s' declares no links", plugin->name);
    }
    const int32_t status = extension->link(from, to, out_link);
    out_link->size = size;
    if (status != GGML_HOST_OK) {
        return ggml_fail(GGML_HOST_UNSUPPORTED,
                         "ggml_backend_dev_link: plugin '%s' declares nothing of these two",
                         plugin->name);
    }
    if (is_sound(out_link)) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_BAD_PLUGIN,
                     "ggml_backend_dev_link: plugin '%s' declares a link with a negative time, no "
                     "rate, or what is no number",
                     plugin->name);
}

// Holds the plugins of both meanwhile. Copies of an isolated device go through the host.
enum ggml_host_status ggml_backend_dev_link(ggml_backend_dev_t from, ggml_backend_dev_t to,
                                            struct ggml_device_link *out_link) {
    ggml_backend_dev_t ends[] = {from ? from : to, to ? to : from};
    struct host_plugin *plugins[2] = {NULL, NULL};
    enum ggml_host_status status = GGML_HOST_OK;
    if (!ends[0] || !out_link || out_link->size < sizeof(*out_link)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "%s: both devices or out_link are NULL, or out_link->size is not set",
                         __func__);
    }
    clear_link(out_link);
    load_builtins_once();
    for (int i = 0; i < 2; ++i)
        plugins[i] = host_live_hold(figures_original_of(ends[i]));
    const bool isolated =
        figures_original_of(ends[0]) != ends[0] || figures_original_of(ends[1]) != ends[1];
    if (!plugins[0] || !plugins[1]) {
        status = ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: not a registered device", __func__);
    } else if (isolated || plugins[0] != plugins[1]) {
        status = ggml_fail(GGML_HOST_UNSUPPORTED,
                           "%s: the devices are isolated or of different plugins", __func__);
    } else {
        status = ask_link(plugins[0], from, to, out_link);
    }
    if (status != GGML_HOST_OK) clear_link(out_link);
    for (int i = 0; i < 2; ++i)
        if (plugins[i]) atomic_fetch_sub(&plugins[i]->live, 1);
    return status;
}
