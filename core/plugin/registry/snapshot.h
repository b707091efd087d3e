// SPDX-License-Identifier: MIT
// The registry as readers see it: an immutable snapshot behind an atomic pointer.
//
// A reader announces itself in one of two counters, reads, and leaves; it never waits. A writer
// (one at a time, under the lock of registry.h) publishes a new snapshot and then waits until every
// reader that may have seen the old one has left. Inside a section no plugin code runs and nothing
// blocks, so that wait is short.
#ifndef GGML_PLUGIN_REGISTRY_SNAPSHOT_H
#define GGML_PLUGIN_REGISTRY_SNAPSHOT_H

#include "plugin/registry/plugin.h"

struct snapshot_device {
    const struct host_device *device;
    struct host_plugin *plugin;
    ggml_backend_dev_t alias_of;
};

struct snapshot {
    size_t n_plugins;
    struct host_plugin **plugins; // in load order
    size_t n_regs;
    struct host_plugin **regs; // those with a backend to show, by their first device
    size_t n_devices;
    struct snapshot_device *devices; // GPU, IGPU, ACCEL, CPU; PCI address; load order
};

// Snapshot of these plugins in load order; nothing of `hidden` (may be NULL) is shown. NULL when
// memory runs out. Freed with ggml_mem_free. [stream]
struct snapshot *snapshot_new(struct host_plugin *const *plugins, size_t n_plugins,
                              const struct host_plugin *hidden);

// The current snapshot, never NULL, valid until snapshot_leave(section). [any-thread]
const struct snapshot *snapshot_enter(unsigned *out_section);
void snapshot_leave(unsigned section);

// For the writer: the current snapshot without announcing anything; NULL before the first. [stream]
struct snapshot *snapshot_current(void);
// Replaces it and waits until no reader holds the one before, which is returned. [stream]
struct snapshot *snapshot_publish(struct snapshot *next);

// In the child of a fork: nobody is reading. [init]
void snapshot_forked(void);

#endif
