// SPDX-License-Identifier: MIT
// Details of devices that plugins report beyond their properties.
#ifndef GGML_PLUGIN_QUERY_DETAILS_H
#define GGML_PLUGIN_QUERY_DETAILS_H

#include "plugin/registry/plugin.h"

// The plugin's list for one of its devices, which runs the plugin's code; NULL: it has none, or
// BAD_PLUGIN, recorded with a message. [any-thread]
const struct ggml_backend_feature *plugin_details(const struct host_plugin *plugin,
                                                  ggml_backend_dev_t device);
// A copy in the arena; NULL stays NULL. False: no memory. [any-thread]
bool details_copy(struct arena *arena, const struct ggml_backend_feature *list,
                  const struct ggml_backend_feature **out_copy);

#endif
