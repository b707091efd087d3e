// SPDX-License-Identifier: MIT
// Read-copy-update with two counters of readers: the publisher flips which one new readers
// take, waits until each has been seen at zero, and then owns the old snapshot. Readers never
// wait.
#include "plugin/registry/snapshot.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/text.h"
#include "base/mem.h"
#include "base/status.h"

static const struct snapshot empty;
static _Atomic(struct snapshot *) current;
static atomic_uint phase; // which counter new readers take
static atomic_size_t readers[2];

const struct snapshot *snapshot_enter(unsigned *out_section) {
    *out_section = atomic_load(&phase) & 1u;
    atomic_fetch_add(&readers[*out_section], 1);
    const struct snapshot *snapshot = atomic_load(&current);
    return snapshot ? snapshot : &empty;
}

void snapshot_leave(unsigned section) {
    atomic_fetch_sub(&readers[section], 1);
}

struct snapshot *snapshot_current(void) {
    return atomic_load(&current);
}

// Both counters are seen at zero once after the exchange, so every reader that loaded the old
// pointer has left. New readers take the other counter meanwhile and can't prolong the wait.
struct snapshot *snapshot_publish(struct snapshot *next) {
    struct snapshot *old = atomic_exchange(&current, next);
    for (int i = 0; i < 2; ++i) {
        const unsigned drained = atomic_fetch_xor(&phase, 1u) & 1u;
        while (atomic_load(&readers[drained]) != 0)
            sched_yield();
    }
    return old;
}

void snapshot_forked(void) {
    for (int i = 0; i < 2; ++i)
        atomic_store(&readers[i], 0);
}

// --- order ---------------------------------------------------------------------------------------

// The first CPU device is the one that applications fall back on: host memory comes first.
static int rank_of(const struct host_device *device) {
    switch (device->type) {
    case GGML_BACKEND_DEVICE_TYPE_GPU: return 0;
    case GGML_BACKEND_DEVICE_TYPE_IGPU: return 1;
    case GGML_BACKEND_DEVICE_TYPE_ACCEL: return 2;
    case GGML_BACKEND_DEVICE_TYPE_CPU: return device->host_memory ? 3 : 4;
    default: return 5;
    }
}

// "0000:01:00.0" as a number; other ids come after every PCI address.
static uint64_t pci_key(const char *device_id) {
    unsigned domain, bus, slot, function;
    const int n = sscanf(device_id, "%8x:%2x:%2x.%1x", &domain, &bus, &slot, &function);
    return n == 4 ? (uint64_t)domain << 24 | bus << 16 | slot << 8 | function : UINT64_MAX;
}

static bool goes_before(const struct host_device *a, const struct host_device *b) {
    const int rank_a = rank_of(a);
    const int rank_b = rank_of(b);
    if (rank_a != rank_b) return rank_a < rank_b;
    return pci_key(a->device_id) < pci_key(b->device_id);
}

// Insertion sort: stable, and devices are few.
static void sort_devices(struct snapshot *snapshot) {
    for (size_t i = 1; i < snapshot->n_devices; ++i) {
        const struct snapshot_device moved = snapshot->devices[i];
        size_t j = i;
        for (; j > 0 && goes_before(moved.device, snapshot->devices[j - 1].device); --j) {
            snapshot->devices[j] = snapshot->devices[j - 1];
        }
        snapshot->devices[j] = moved;
    }
}

// What follows '#' tells parts of one piece of hardware apart, each plugin in its way: a part of
// one plugin and the whole, or a part, of another may be the same.
static bool is_same_hardware(const char *a, const char *b) {
    const size_t length = strcspn(a, "#");
    return length == strcspn(b, "#") && ascii_equal_n(a, b, length);
}

// Runs in load order, so that the later one is the alias.
static ggml_backend_dev_t find_original(const struct snapshot *snapshot,
                                        const struct snapshot_device *later) {
    if (later->device->device_id[0] == '\0') return NULL;
    for (size_t i = 0; i < snapshot->n_devices; ++i) {
        const struct snapshot_device *earlier = &snapshot->devices[i];
        if (earlier->alias_of || earlier->plugin == later->plugin) continue;
        if (is_same_hardware(earlier->device->device_id, later->device->device_id)) {
            return host_device_shown(earlier->device);
        }
    }
    return NULL;
}

static void add_devices(struct snapshot *snapshot, struct host_plugin *plugin) {
    const struct device_list *list = plugin_devices(plugin);
    for (size_t i = 0; i < list->count; ++i) {
        if (list->items[i].hidden) continue;
        struct snapshot_device *added = &snapshot->devices[snapshot->n_devices];
        added->device = &list->items[i];
        added->plugin = plugin;
        added->alias_of = find_original(snapshot, added);
        ++snapshot->n_devices;
    }
}

static void add_reg(struct snapshot *snapshot, struct host_plugin *plugin) {
    for (size_t i = 0; i < snapshot->n_regs; ++i) {
        if (snapshot->regs[i] == plugin) return;
    }
    if (plugin->reg) snapshot->regs[snapshot->n_regs++] = plugin;
}

struct snapshot *snapshot_new(struct host_plugin *const *plugins, size_t n_plugins,
                              const struct host_plugin *hidden) {
    size_t n_devices = 0;
    for (size_t i = 0; i < n_plugins; ++i)
        n_devices += plugin_devices(plugins[i])->count;
    const size_t devices_size = n_devices * sizeof(struct snapshot_device);
    const size_t plugins_size = n_plugins * sizeof(struct host_plugin *);
    struct snapshot *snapshot =
        ggml_mem_calloc(1, sizeof(*snapshot) + devices_size + 2 * plugins_size);
    if (!snapshot) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the list of %zu devices", n_devices);
        return NULL;
    }
    snapshot->devices = (struct snapshot_device *)(snapshot + 1);
    snapshot->plugins = (struct host_plugin **)(snapshot->devices + n_devices);
    snapshot->regs = snapshot->plugins + n_plugins;
    snapshot->n_plugins = n_plugins;
    for (size_t i = 0; i < n_plugins; ++i) {
        snapshot->plugins[i] = plugins[i];
        if (plugins[i] != hidden) add_devices(snapshot, plugins[i]);
    }
    sort_devices(snapshot);
    for (size_t i = 0; i < snapshot->n_devices; ++i)
        add_reg(snapshot, snapshot->devices[i].plugin);
    for (size_t i = 0; i < n_plugins; ++i) {
        if (plugins[i] != hidden) add_reg(snapshot, plugins[i]);
    }
    return snapshot;
}
