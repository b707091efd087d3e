// SPDX-License-Identifier: MIT
// Lock-free queries of the registry, and opening streams by them.
#include <string.h>

#include "base/data/text.h"
#include "base/status.h"
#include "ggml-backend-impl.h"
#include "plugin/load/load.h"
#include "plugin/registry/snapshot.h"

// Begins a section in which the returned snapshot stays valid; snapshot_leave() ends it. Built-in
// plugins are registered by the first query.
static const struct snapshot *query_enter(unsigned *out_section) {
    load_builtins_once();
    return snapshot_enter(out_section);
}

// --- lists ---------------------------------------------------------------------------------------

// The number of devices may change between calls, as plugins are loaded and devices appear.
size_t ggml_backend_dev_count(void) {
    unsigned section;
    const size_t count = query_enter(&section)->n_devices;
    snapshot_leave(section);
    return count;
}

ggml_backend_dev_t ggml_backend_dev_get(size_t index) {
    unsigned section;
    const struct snapshot *snapshot = query_enter(&section);
    const size_t count = snapshot->n_devices;
    ggml_backend_dev_t device =
        index < count ? host_device_shown(snapshot->devices[index].device) : NULL;
    snapshot_leave(section);
    if (!device) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "ggml_backend_dev_get: index %zu, but there are %zu devices", index, count);
    }
    return device;
}

size_t ggml_backend_reg_count(void) {
    unsigned section;
    const size_t count = query_enter(&section)->n_regs;
    snapshot_leave(section);
    return count;
}

ggml_backend_reg_t ggml_backend_reg_get(size_t index) {
    unsigned section;
    const struct snapshot *snapshot = query_enter(&section);
    const size_t count = snapshot->n_regs;
    ggml_backend_reg_t reg = index < count ? snapshot->regs[index]->reg : NULL;
    snapshot_leave(section);
    if (!reg) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "ggml_backend_reg_get: index %zu, but there are %zu backends", index, count);
    }
    return reg;
}

// Asks a plugin that represents several backends for one of them.
static ggml_backend_reg_t ask_for_name(ggml_backend_reg_t reg, const char *name) {
    union {
        void *address;
        ggml_backend_reg_t (*find)(const char *name);
    } function = {NULL};
    if (reg->table->get_proc_address)
        function.address = reg->table->get_proc_address(reg, "ggml_backend_reg_by_name");
    return function.address ? function.find(name) : NULL;
}

// The plugin of the i-th backend, counted as in use. Used instead of a section where the plugin is
// called: it may announce devices, which waits for all readers.
static struct host_plugin *hold_reg(size_t i) {
    unsigned section;
    const struct snapshot *snapshot = snapshot_enter(&section);
    struct host_plugin *plugin = i < snapshot->n_regs ? snapshot->regs[i] : NULL;
    if (plugin) atomic_fetch_add(&plugin->live, 1);
    snapshot_leave(section);
    return plugin;
}

// NULL without an error if there is none, as in ggml: programs try several names. Plugins that
// represent several backends are asked last.
ggml_backend_reg_t ggml_backend_reg_by_name(const char *name) {
    unsigned section;
    ggml_backend_reg_t reg = NULL;
    if (!name) return NULL;
    const struct snapshot *snapshot = query_enter(&section);
    for (size_t i = 0; i < snapshot->n_regs && !reg; ++i) {
        if (ascii_equal(snapshot->regs[i]->reg_name, name)) reg = snapshot->regs[i]->reg;
    }
    snapshot_leave(section);
    struct host_plugin *plugin;
    for (size_t i = 0; !reg && (plugin = hold_reg(i)) != NULL; ++i) {
        reg = ask_for_name(plugin->reg, name);
        atomic_fetch_sub(&plugin->live, 1);
    }
    return reg;
}

// First device with this name, without regard to case, as in ggml; in the order that applications
// see.
static const struct snapshot_device *find_name(const struct snapshot *snapshot, const char *name) {
    for (size_t i = 0; i < snapshot->n_devices; ++i) {
        if (ascii_equal(snapshot->devices[i].device->name, name)) return &snapshot->devices[i];
    }
    return NULL;
}

// First device of the type in the order of the registry.
static const struct snapshot_device *find_type(const struct snapshot *snapshot,
                                               enum ggml_backend_dev_type type) {
    for (size_t i = 0; i < snapshot->n_devices; ++i) {
        if (snapshot->devices[i].device->type == type) return &snapshot->devices[i];
    }
    return NULL;
}

ggml_backend_dev_t ggml_backend_dev_by_name(const char *name) {
    unsigned section;
    if (!name) return NULL;
    const struct snapshot_device *found = find_name(query_enter(&section), name);
    ggml_backend_dev_t device = found ? host_device_shown(found->device) : NULL;
    snapshot_leave(section);
    return device;
}

ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type) {
    unsigned section;
    const struct snapshot_device *found = find_type(query_enter(&section), type);
    ggml_backend_dev_t device = found ? host_device_shown(found->device) : NULL;
    snapshot_leave(section);
    return device;
}

// --- streams -------------------------------------------------------------------------------------

// Opens a stream on a found device. The plugin is counted as in use before the section ends, so
// that it stays until the stream exists.
static ggml_backend_t init_found(const struct snapshot_device *found, unsigned section,
                                 const char *params) {
    ggml_backend_dev_t device = found ? host_device_shown(found->device) : NULL;
    struct host_plugin *plugin = found ? found->plugin : NULL;
    if (plugin) atomic_fetch_add(&plugin->live, 1);
    snapshot_leave(section);
    if (!plugin) return NULL;
    ggml_backend_t backend = ggml_backend_dev_init(device, params);
    atomic_fetch_sub(&plugin->live, 1);
    return backend;
}

ggml_backend_t ggml_backend_init_by_name(const char *name, const char *params) {
    unsigned section;
    if (!name) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_backend_init_by_name: the name is NULL");
        return NULL;
    }
    const struct snapshot_device *found = find_name(query_enter(&section), name);
    if (!found) {
        ggml_fail(GGML_HOST_NOT_FOUND,
                  "ggml_backend_init_by_name: no device is named '%s': see the "
                  "list of devices",
                  name);
    }
    return init_found(found, section, params);
}

ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type, const char *params) {
    unsigned section;
    const struct snapshot_device *found = find_type(query_enter(&section), type);
    if (!found) {
        ggml_fail(GGML_HOST_NOT_FOUND, "ggml_backend_init_by_type: no device of type %d",
                  (int)type);
    }
    return init_found(found, section, params);
}

// Opens the best device in ggml's order: GPU, integrated GPU, CPU. Accelerators are never the best,
// since they compute only some operations.
ggml_backend_t ggml_backend_init_best(void) {
    unsigned section;
    const struct snapshot *snapshot = query_enter(&section);
    const struct snapshot_device *found = find_type(snapshot, GGML_BACKEND_DEVICE_TYPE_GPU);
    if (!found) found = find_type(snapshot, GGML_BACKEND_DEVICE_TYPE_IGPU);
    if (!found) found = find_type(snapshot, GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!found) {
        ggml_fail(GGML_HOST_NOT_FOUND, "ggml_backend_init_best: no GPU, IGPU or CPU device: load "
                                       "plugins first");
    }
    return init_found(found, section, NULL);
}

// --- backends ------------------------------------------------------------------------------------

// Whether the backend isn't NULL; records the error otherwise.
static bool given(ggml_backend_reg_t reg, const char *function) {
    if (!reg) ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the backend is NULL", function);
    return reg != NULL;
}

// The plugin of a registered backend; NULL for others, which are called directly.
static const struct host_plugin *find_reg(const struct snapshot *snapshot, ggml_backend_reg_t reg) {
    for (size_t i = 0; i < snapshot->n_plugins; ++i) {
        if (snapshot->plugins[i]->reg == reg) return snapshot->plugins[i];
    }
    return NULL;
}

const char *ggml_backend_reg_name(ggml_backend_reg_t reg) {
    if (!given(reg, "ggml_backend_reg_name")) return NULL;
    return reg->table->get_name(reg);
}

// The index-th device that no filter hides, or NULL; *out_count is the number of such devices.
static const struct host_device *shown_device(const struct host_plugin *plugin, size_t index,
                                              size_t *out_count) {
    const struct host_device *found = NULL;
    *out_count = 0;
    const struct device_list *list = plugin_devices(plugin);
    for (size_t i = 0; i < list->count; ++i) {
        if (list->items[i].hidden) continue;
        if ((*out_count)++ == index) found = &list->items[i];
    }
    return found;
}

size_t ggml_backend_reg_dev_count(ggml_backend_reg_t reg) {
    unsigned section;
    size_t count = 0;
    if (!given(reg, "ggml_backend_reg_dev_count")) return 0;
    const struct host_plugin *plugin = find_reg(snapshot_enter(&section), reg);
    if (plugin) shown_device(plugin, 0, &count);
    snapshot_leave(section);
    return plugin ? count : reg->table->get_device_count(reg);
}

ggml_backend_dev_t ggml_backend_reg_dev_get(ggml_backend_reg_t reg, size_t index) {
    unsigned section;
    size_t count = 0;
    ggml_backend_dev_t device = NULL;
    if (!given(reg, "ggml_backend_reg_dev_get")) return NULL;
    const struct host_plugin *plugin = find_reg(snapshot_enter(&section), reg);
    if (plugin) {
        const struct host_device *shown = shown_device(plugin, index, &count);
        device = shown ? host_device_shown(shown) : NULL;
    }
    snapshot_leave(section);
    if (!plugin) {
        count = reg->table->get_device_count(reg);
        device = index < count ? reg->table->get_device(reg, index) : NULL;
    }
    if (!device) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE,
                  "ggml_backend_reg_dev_get: index %zu, but the backend has "
                  "%zu devices",
                  index, count);
    }
    return device;
}

void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t reg, const char *name) {
    if (!given(reg, "ggml_backend_reg_get_proc_address")) return NULL;
    if (!name) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_backend_reg_get_proc_address: the name is NULL");
        return NULL;
    }
    return reg->table->get_proc_address ? reg->table->get_proc_address(reg, name) : NULL;
}

// --- information ---------------------------------------------------------------------------------

// Reliability of the device's memory figures: drivers that don't know what is free report 0 for
// both numbers, or everything as free.
static enum ggml_memory_quality memory_quality(ggml_backend_dev_t device) {
    size_t free = 0;
    size_t total = 0;
    device->table->get_memory(device, &free, &total);
    if (total == 0) return GGML_MEMORY_UNKNOWN;
    return free == total ? GGML_MEMORY_ESTIMATED : GGML_MEMORY_KNOWN;
}

enum ggml_host_status ggml_backend_dev_info(ggml_backend_dev_t device,
                                            struct ggml_device_info *out_info) {
    struct ggml_device_info info = {.size = sizeof(info), .plugin_path = "", .plugin_name = ""};
    unsigned section;
    if (!device || !out_info || out_info->size < sizeof(info)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_backend_dev_info: device or out_info is "
                                                     "NULL, or out_info->size is not set");
    }
    *out_info = info;
    // Counted as in use while the plugin is asked for its memory, outside the section: a driver may
    // take long, and unloading would wait for it.
    struct host_plugin *plugin = NULL;
    const struct snapshot *snapshot = query_enter(&section);
    for (size_t i = 0; i < snapshot->n_devices && !plugin; ++i) {
        if (host_device_shown(snapshot->devices[i].device) != device) continue;
        plugin = snapshot->devices[i].plugin;
        info.alias_of = snapshot->devices[i].alias_of;
        atomic_fetch_add(&plugin->live, 1);
    }
    snapshot_leave(section);
    if (!plugin) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_backend_dev_info: not a registered device");
    }
    info.plugin_path = plugin->path;
    info.plugin_name = plugin->name;
    info.memory = memory_quality(device);
    atomic_fetch_sub(&plugin->live, 1);
    *out_info = info;
    return GGML_HOST_OK;
}
