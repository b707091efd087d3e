// SPDX-License-Identifier: MIT
// Services that topology.c needs from the system: with hwloc, without it, or by Windows' own calls.
#ifndef GGML_MACHINE_TOPOLOGY_SYSTEM_H
#define GGML_MACHINE_TOPOLOGY_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

#include "ggml-plugin.h"
#include "machine/topology/topology_table.h"

// Everything but cpu_features. OUT_OF_MEMORY, or UNSUPPORTED if the machine can't be discovered or
// nothing of it may be used. Called once, before the others. [init]
enum ggml_host_status topology_system_discover(struct ggml_host_topology *out_facts);

// Describes the machine in an empty table, whichever CPUs the process may use; false if it can't.
typedef bool topology_asker(struct topology_table *out_table);
// Linux: whom to ask before /sys is read; NULL: nobody. A higher layer has processes to ask in.
// [init]
void topology_set_asker(topology_asker *ask);

// Bind the calling thread: to everything that the process may use; as worker `index` of `count`
// (index < count); to CPUs of a mask, INVALID_ARGUMENT if there are none. UNSUPPORTED or FAILED
// where the system refuses. [any-thread]
enum ggml_host_status topology_system_bind_all(void);
enum ggml_host_status topology_system_bind_worker(uint32_t index, uint32_t count);
enum ggml_host_status topology_system_bind_mask(const uint64_t *mask, size_t n_words);

// Fills in default_threads, and what bounds it, from n_performance_cores; `quota` counts CPUs,
// 0: none. [any-thread]
void topology_bound_threads(struct ggml_host_topology *facts, bool affinity_narrows, double quota);

#endif
