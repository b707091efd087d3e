// SPDX-License-Identifier: MIT
// A backend that is in use: from a file, built in, or registered by hand.
#ifndef GGML_PLUGIN_REGISTRY_PLUGIN_H
#define GGML_PLUGIN_REGISTRY_PLUGIN_H

#include <stdatomic.h>

#include "base/data/arena.h"
#include "base/dl/dl.h"
#include "ggml-host.h"
#include "plugin/image/note.h"

// Strings are copies, so that look-ups never run a plugin's code.
struct host_device {
    ggml_backend_dev_t device;
    const char *name;
    const char *device_id; // "" if it has none
    enum ggml_backend_dev_type type;
    bool host_memory;            // of a CPU device: its default memory is the host's
    bool hidden;                 // excluded by GGML_DEVICES, or GGML_ISOLATE could not be done
    ggml_backend_dev_t isolated; // has its place for applications: another process computes it;
                                 // NULL: none
};

// What applications get for it. [any-thread]
static inline ggml_backend_dev_t host_device_shown(const struct host_device *device) {
    return device->isolated ? device->isolated : device->device;
}

// Whether `device` is this one or has its place; NULL is neither. [any-thread]
static inline bool host_device_is(const struct host_device *listed, ggml_backend_dev_t device) {
    return device && (listed->device == device || listed->isolated == device);
}

// Immutable once others can see it, but for what a plugin's load hides; a longer one takes its
// place when devices are added.
struct device_list {
    size_t count;
    struct host_device items[];
};

struct host_plugin {
    struct arena arena; // holds the strings and the lists of devices
    const char *path;   // BUILTIN_PATH, or "" if registered by hand
    const char *folder; // of that file; NULL unless from a file
    const char *name;   // "" if registered by hand
    const char *reg_name;
    struct plugin_file_id id; // zero unless from a file
    void *pin;                // of that file if a copy of it is mapped, see plugin_file_pin()
    uint32_t flags;           // enum ggml_plugin_flag
    int contract_minor;       // of its note; the host's own if registered by hand
    bool stays;               // its library is never unmapped
    struct dl_library *library;
    struct ggml_host_table host; // what it is given; zero if registered by hand
    const struct ggml_plugin_table *table;
    ggml_plugin_init_t entry; // NULL if registered by hand
    ggml_backend_reg_t reg;   // NULL for a single device registered by hand
    _Atomic(struct device_list *) devices;
    atomic_bool changed; // it said that it has more devices, which are to be looked at
    atomic_size_t live;  // streams, buffers, events and calls in progress on its devices
};

// Its devices at this moment, never NULL. The list is valid as long as the plugin. [any-thread]
struct device_list *plugin_devices(const struct host_plugin *plugin);

// The plugin that was given this table. [any-thread]
struct host_plugin *plugin_of_table(const struct ggml_host_table *host);

// An empty one; NULL when memory runs out. [any-thread]
struct host_plugin *plugin_new(const char *path, const char *name);
// Takes over what ggml_backend_init returned, after checking it: GGML_HOST_BAD_PLUGIN or
// GGML_HOST_OUT_OF_MEMORY with a message, plugin->reg is then not set. plugin->table is set as soon
// as its shutdown can be called. [init]
enum ggml_host_status plugin_adopt_table(struct host_plugin *plugin,
                                         const struct ggml_plugin_table *table);
// The same for a backend, or a single device, that the application registers. [init]
enum ggml_host_status plugin_adopt_reg(struct host_plugin *plugin, ggml_backend_reg_t reg);
enum ggml_host_status plugin_adopt_device(struct host_plugin *plugin, ggml_backend_dev_t device);
// Whether its table has what a backend must have. [any-thread]
bool plugin_reg_usable(ggml_backend_reg_t reg);
// The list with the devices that its backend has gained in *out_list, for plugin_set_devices();
// NULL if there are none. What it had stays. A device that is no good is left out: the status and
// message are then those of the last of them. [init]
enum ggml_host_status plugin_find_more(struct host_plugin *plugin, struct device_list **out_list);
void plugin_set_devices(struct host_plugin *plugin, struct device_list *list);
// The library of a plugin that was freed but stays mapped, if it was this very file; else NULL.
// [init]
struct dl_library *plugin_kept_library(const struct plugin_file_id *id);
// Shuts it down, unmaps it and frees everything. NULL is ignored. [init]
void plugin_free(struct host_plugin *plugin);

#endif
