// SPDX-License-Identifier: MIT
// Counts, caches and core order derived from a topology, an affinity and control groups, real or
// replayed.
#ifndef GGML_MACHINE_TOPOLOGY_VIEW_H
#define GGML_MACHINE_TOPOLOGY_VIEW_H

#include "ggml-plugin.h"
#include "machine/hwloc_calls.h"

struct topology_source {
    const struct hwloc_calls *hwloc;
    hwloc_topology_t topology;     // loaded, with HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED
    hwloc_const_cpuset_t affinity; // NULL: everything
    double cpu_quota;              // cgroup_cpu_limit(); 0: none
};

struct topology_view {
    const struct hwloc_calls *hwloc;
    struct ggml_host_topology facts; // without cpu_features
    hwloc_bitmap_t allowed;          // logical CPUs that this process may use
    hwloc_bitmap_t *cores;           // their cores, performance cores first
    size_t n_cores;
};

// OUT_OF_MEMORY, or UNSUPPORTED if nothing of the machine is allowed. Freed with
// topology_view_free, also after failure. [any-thread]
enum ggml_host_status topology_view_init(struct topology_view *out_view,
                                         const struct topology_source *source);
void topology_view_free(struct topology_view *view);

// The logical CPUs of worker `index` of `count` (index < count); they belong to the view.
// [any-thread]
hwloc_const_cpuset_t topology_view_worker(const struct topology_view *view, uint32_t index,
                                          uint32_t count);

#endif
