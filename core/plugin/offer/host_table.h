// SPDX-License-Identifier: MIT
// What the host offers to plugins.
#ifndef GGML_PLUGIN_OFFER_HOST_TABLE_H
#define GGML_PLUGIN_OFFER_HOST_TABLE_H

#include "ggml-plugin.h"

// Fills the table of a plugin, which is the member `host` of its struct host_plugin. [any-thread]
void host_table_init(struct ggml_host_table *out_table);

#endif
