// SPDX-License-Identifier: MIT
// GGML_DEVICES: what to use, by plugin name, device name, PCI address or UUID.
#ifndef GGML_PLUGIN_DISCOVER_FILTER_H
#define GGML_PLUGIN_DISCOVER_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/data/arena.h"

struct device_filter {
    const char **wanted; // empty: everything that is not excluded
    size_t n_wanted;
    const char **excluded;
    size_t n_excluded;
    const char **plugin_names; // of all candidates, to tell plugin names from device names
    size_t n_plugin_names;
};

// Appends to plugin_names, which has room for it; the name is not copied. [any-thread]
static inline void filter_add_plugin_name(struct device_filter *filter, const char *name) {
    filter->plugin_names[filter->n_plugin_names++] = name;
}

// Splits a value of GGML_DEVICES (NULL or empty: everything) at the commas; all memory is the
// arena's. false when memory runs out. [any-thread]
bool filter_parse(struct device_filter *out_filter, const char *value, struct arena *arena);

// Whether the plugin could offer a device that is wanted, as far as its name tells: an entry that
// is the name of a plugin, or such a name and a number ("cuda", "CUDA0"), speaks of that plugin
// only; any other entry can be meant for a device of any plugin. [any-thread]
bool filter_allows_plugin(const struct device_filter *filter, const char *plugin_name);

// Whether the device is wanted. device_id may be "". [any-thread]
bool filter_allows_device(const struct device_filter *filter, const char *plugin_name,
                          const char *device_name, const char *device_id);

#endif
