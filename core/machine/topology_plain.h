// SPDX-License-Identifier: MIT
// The machine without hwloc. Linux: affinity and /sys, always: hwloc reads the environment, loads
// plugins from a directory named there, and crashes or hangs where memory is short, in whichever
// process it runs. Elsewhere, where hwloc isn't installed, only the number of CPUs is known.
#ifndef GGML_MACHINE_TOPOLOGY_PLAIN_H
#define GGML_MACHINE_TOPOLOGY_PLAIN_H

#include "ggml-plugin.h"

enum { TOPOLOGY_PLAIN_WORDS = 128 }; // of 64 logical CPUs each

struct topology_plain_source {
    const char *root;        // folder that has a copy of /sys; "": the system's own
    const uint64_t *allowed; // TOPOLOGY_PLAIN_WORDS; NULL: the affinity of this process
    double cpu_quota;        // cgroup_cpu_limit(); 0: none
};

// As the functions of topology_system.h.
enum ggml_host_status topology_plain_discover(const struct topology_plain_source *source,
                                              struct ggml_host_topology *out_facts);
// The logical CPUs of worker `index` of `count` of what was discovered last.
void topology_plain_worker(uint32_t index, uint32_t count, uint64_t out_mask[TOPOLOGY_PLAIN_WORDS]);
enum ggml_host_status topology_plain_bind_all(void);
enum ggml_host_status topology_plain_bind_worker(uint32_t index, uint32_t count);
enum ggml_host_status topology_plain_bind_mask(const uint64_t *mask, size_t n_words);

#endif
