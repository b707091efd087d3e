// SPDX-License-Identifier: MIT
// Helper processes end with the application.
#ifndef GGML_PLUGIN_PROBE_PROBE_WATCH_H
#define GGML_PLUGIN_PROBE_PROBE_WATCH_H

#include <stdbool.h>

// Starts a thread that kills this process's groups (of processes, and of probe_group.h) when
// `parent` is not its parent any more: however the application ended, whatever the driver is doing.
// false: no thread. [init]
bool probe_watch_parent(long parent);

#endif
