// SPDX-License-Identifier: MIT
// The machine of a process that doesn't map hwloc. On Linux that is every process: hwloc reads the
// environment, maps plugins from a directory named there, and crashes or hangs where memory is
// short, so it is asked in another one, and /sys is read where that isn't possible. Elsewhere,
// where hwloc isn't installed, only the number of CPUs is known.
#ifndef GGML_MACHINE_TOPOLOGY_PLAIN_H
#define GGML_MACHINE_TOPOLOGY_PLAIN_H

#include "machine/topology/topology_system.h"

struct topology_plain_source {
    const char *root;        // folder that has a copy of /sys; "": the system's own
    const uint64_t *allowed; // TOPOLOGY_WORDS; NULL: the affinity of this process
    double cpu_quota;        // cgroup_cpu_limit(); 0: none
    topology_asker *ask;     // before /sys is read; NULL: nobody
};

// As the functions of topology_system.h.
enum ggml_host_status topology_plain_discover(const struct topology_plain_source *source,
                                              struct ggml_host_topology *out_facts);
enum ggml_host_status topology_plain_bind_all(void);
enum ggml_host_status topology_plain_bind_worker(uint32_t index, uint32_t count);
enum ggml_host_status topology_plain_bind_mask(const uint64_t *mask, size_t n_words);

#endif
