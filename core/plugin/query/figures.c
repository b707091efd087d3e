// SPDX-License-Identifier: MIT
// Performance figures of devices that declare them through their plugins.
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

// NULL: the plugin doesn't offer the extension in this revision.
static const struct ggml_extension_device_figures *extension_of(const struct host_plugin *plugin) {
    if (!plugin->table || !plugin->table->get_extension) return NULL;
    const struct ggml_extension_device_figures *extension = plugin->table->get_extension(
        plugin->table, GGML_EXTENSION_DEVICE_FIGURES, GGML_EXTENSION_DEVICE_FIGURES_REVISION);
    return extension && extension->size >= sizeof(*extension) ? extension : NULL;
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
    const struct ggml_extension_device_figures *extension = extension_of(plugin);
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
