// SPDX-License-Identifier: MIT
// The machine without hwloc, for processes with more rights than their caller: hwloc reads the
// environment and loads plugins from a directory that it names. On Linux from the affinity and from
// /sys, elsewhere only the number of CPUs is known.
#ifndef GGML_MACHINE_TOPOLOGY_PLAIN_H
#define GGML_MACHINE_TOPOLOGY_PLAIN_H

#include "ggml-plugin.h"

// As the functions of topology_system.h.
enum ggml_host_status topology_plain_discover(const char *root,
                                              struct ggml_host_topology *out_facts);
enum ggml_host_status topology_plain_bind_all(void);
enum ggml_host_status topology_plain_bind_worker(uint32_t index, uint32_t count);
enum ggml_host_status topology_plain_bind_mask(const uint64_t *mask, size_t n_words);

#endif
