// SPDX-License-Identifier: MIT
// The extension by which a plugin reports when nodes of graphs are computed.
#ifndef GGML_PLUGIN_QUERY_PROFILE_H
#define GGML_PLUGIN_QUERY_PROFILE_H

#include "ggml-plugin.h"

// The extension "ggml.profile" of the device's plugin, with every entry; NULL: it has none, or the
// device belongs to no plugin. Valid as long as a stream of the device lives. [any-thread]
const struct ggml_extension_profile *plugin_profile(ggml_backend_dev_t device);

#endif
