// SPDX-License-Identifier: MIT
// Extensions that plugins may ask for: the host's own and those of the application.
#ifndef GGML_PLUGIN_OFFER_EXTENSIONS_H
#define GGML_PLUGIN_OFFER_EXTENSIONS_H

#include <stdint.h>

struct host_plugin;

// As get_extension of struct ggml_host_table, for that plugin. [any-thread]
const void *extension_find(const struct host_plugin *plugin, const char *id, uint32_t min_revision);

// From now on this process only tries plugins out: "ggml.trial" is offered. [any-thread]
void extensions_set_trial(void);

#endif
