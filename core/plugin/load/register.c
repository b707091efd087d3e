// SPDX-License-Identifier: MIT
// Backends that the application links in and registers by hand.
#include "base/status.h"
#include "ggml-backend-impl.h"
#include "plugin/registry/registry.h"

// Whether the devices of a backend are registered already: a plugin may have announced them as its
// own.
static bool devices_are_known(ggml_backend_reg_t reg) {
    const struct ggml_backend_table *table = reg->table;
    const size_t count = plugin_reg_usable(reg) ? table->get_device_count(reg) : 0;
    for (size_t i = 0; i < count; ++i) {
        if (!registry_find_device(table->get_device(reg, i))) return false;
    }
    return count > 0;
}

// Such backends have no file and no record; they are registered as plugins without a name.
void ggml_backend_register(ggml_backend_reg_t reg) {
    if (!reg || !registry_lock("ggml_backend_register")) return;
    if (!registry_find_reg(reg) && !devices_are_known(reg)) {
        struct host_plugin *plugin = plugin_new("", "");
        enum ggml_host_status status =
            plugin ? plugin_adopt_reg(plugin, reg) : GGML_HOST_OUT_OF_MEMORY;
        if (status == GGML_HOST_OK) status = registry_add(plugin);
        if (status != GGML_HOST_OK) plugin_free(plugin);
    }
    registry_unlock();
}

// A single device, wrapped into a registration of its own.
void ggml_backend_device_register(ggml_backend_dev_t device) {
    if (!device || !registry_lock("ggml_backend_device_register")) return;
    if (!registry_find_device(device)) {
        struct host_plugin *plugin = plugin_new("", "");
        enum ggml_host_status status =
            plugin ? plugin_adopt_device(plugin, device) : GGML_HOST_OUT_OF_MEMORY;
        if (status == GGML_HOST_OK) status = registry_add(plugin);
        if (status != GGML_HOST_OK) plugin_free(plugin);
    }
    registry_unlock();
}
