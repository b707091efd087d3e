// SPDX-License-Identifier: MIT
// GGML_ISOLATE: devices that another process computes, in programs that know nothing of it.
#ifndef GGML_PLUGIN_REGISTRY_ISOLATION_H
#define GGML_PLUGIN_REGISTRY_ISOLATION_H

#include "plugin/registry/plugin.h"

// Isolates those devices from the first-th on that are to be shown and that GGML_ISOLATE names, in
// a list that nobody sees yet. One that can't be is hidden, not shown as it is, since its driver
// would be the application's again; that is logged. Returns the status of the last failure, with
// its message, or GGML_HOST_OK. With the registry's lock held. [init]
enum ggml_host_status isolation_apply(const struct host_plugin *plugin, struct device_list *list,
                                      size_t first);

// What makes such devices, in a layer above this folder.
struct isolation_maker {
    // One that another process computes in the place of the plugin's `number`-th in its list, which
    // is `device`. It belongs to the plugin and does not keep it loaded. Statuses as of
    // ggml_host_isolate. With the registry's lock held. [init]
    enum ggml_host_status (*make)(const struct host_plugin *plugin, size_t number,
                                  const struct host_device *device, ggml_backend_dev_t *out_device);
    // Ends it; nothing of it is alive. NULL does nothing. [init]
    void (*free)(ggml_backend_dev_t device);
};

// In core/lib. [any-thread]
const struct isolation_maker *isolation_maker(void);

#endif
