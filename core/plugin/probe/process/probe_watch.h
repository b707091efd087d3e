// SPDX-License-Identifier: MIT
// Helper processes end with the application. A closed pipe would not tell: a child of the
// application may have a copy of its end.
#ifndef GGML_PLUGIN_PROBE_PROBE_WATCH_H
#define GGML_PLUGIN_PROBE_PROBE_WATCH_H

#include <stdbool.h>

// Starts a watcher that kills this process's groups (of processes, and of probe_group.h) when
// `parent`, which is its parent, has ended: however that ended, whatever the driver is doing. On
// Linux it is a process, which also kills what is left when this one ends, and takes the place of
// PR_SET_PDEATHSIG; elsewhere a thread, which does not run while the plugin has stopped its
// process. `answers` is the descriptor whose end tells the application that this process has ended,
// which the watcher must not hold. In the sandbox, out of which no signal leads back to the
// watcher; before other threads and the plugin. false: no watcher. [init]
bool probe_watch_parent(long parent, int answers);

// Ends the watcher, before this process ends by itself. [init]
void probe_watch_end(void);

#endif
