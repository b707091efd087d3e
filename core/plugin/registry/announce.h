// SPDX-License-Identifier: MIT
// Devices that come while their plugin is in use: other machines, what is plugged in.
#ifndef GGML_PLUGIN_REGISTRY_ANNOUNCE_H
#define GGML_PLUGIN_REGISTRY_ANNOUNCE_H

#include "plugin/registry/plugin.h"

// Called for a plugin that has more devices: they are shown at once, or when a running load or
// unload ends. UNSUPPORTED unless its note has the flag. Never blocks. [any-thread]
enum ggml_host_status announce_devices(struct host_plugin *plugin);
// Marks every plugin whose devices may become more, to be looked at when the registry's lock is
// given up. [stream]
void announce_mark_all(void);
// Shows the devices of those that are marked; the registry's lock is held. Leaves the last error
// alone: what is no good is logged. Whether there are any. [stream]
bool announce_new_devices(void);

#endif
