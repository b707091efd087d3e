// SPDX-License-Identifier: MIT
// The loaded plugins. Readers take no lock (snapshot.h); changes take one.
#ifndef GGML_PLUGIN_REGISTRY_REGISTRY_H
#define GGML_PLUGIN_REGISTRY_REGISTRY_H

#include "plugin/discover/filter.h"
#include "plugin/registry/plugin.h"

// Takes the lock for a change. false with GGML_HOST_BUSY: this thread holds it already, that is, a
// plugin or a callback that is running inside a change calls back. [any-thread]
bool registry_lock(const char *function);
void registry_unlock(void);
// Lists devices of plugins that are marked as changed: now, or when the thread that holds the lock
// releases it. Never blocks. [any-thread]
void registry_look_again(void);

// The functions below are called with the lock held. [stream]

// Shows the plugin to everybody. On failure (GGML_HOST_OUT_OF_MEMORY) it stays the caller's.
enum ggml_host_status registry_add(struct host_plugin *plugin);
// Shows what the plugins' lists of devices are by now.
enum ggml_host_status registry_refresh(void);
// Takes it out; it is the caller's then. GGML_HOST_BUSY while it is in use,
// GGML_HOST_OUT_OF_MEMORY; nothing is changed then.
enum ggml_host_status registry_remove(struct host_plugin *plugin);
// NULL when there is none.
struct host_plugin *registry_find_reg(ggml_backend_reg_t reg);
struct host_plugin *registry_find_device(ggml_backend_dev_t device);
struct host_plugin *registry_find_file(const struct plugin_file_id *id);
struct host_plugin *registry_find_entry(ggml_plugin_init_t entry);
struct host_plugin *registry_find_name(const char *plugin_name);
// The i-th in load order, NULL past the end.
struct host_plugin *registry_plugin(size_t i);
// Reads GGML_DEVICES. What its entries mean depends on the names of plugins: those of built-in and
// loaded ones are in *out_filter, which has room for n_more, added by filter_add_plugin_name(). All
// memory is the arena's. GGML_HOST_OUT_OF_MEMORY.
enum ggml_host_status registry_read_filter(size_t n_more, struct arena *arena,
                                           struct device_filter *out_filter);

#endif
