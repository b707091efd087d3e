// SPDX-License-Identifier: MIT
// The profiling extension of a device's plugin. The plugin is held during the call, because it
// could be unloaded meanwhile. A table that lacks entries counts as none.
#include "plugin/query/profile.h"

#include <stdatomic.h>

#include "plugin/registry/live.h"
#include "plugin/registry/plugin.h"

const struct ggml_extension_profile *plugin_profile(ggml_backend_dev_t device) {
    const struct ggml_extension_profile *found = NULL;
    struct host_plugin *plugin = host_live_hold(device);
    if (!plugin) return NULL;
    const struct ggml_plugin_table *table = plugin->table;
    if (table && table->get_extension)
        found =
            table->get_extension(table, GGML_EXTENSION_PROFILE, GGML_EXTENSION_PROFILE_REVISION);
    atomic_fetch_sub(&plugin->live, 1);
    const bool whole = found && found->size >= sizeof(*found) && found->begin && found->tag &&
                       found->read && found->end;
    return whole ? found : NULL;
}
