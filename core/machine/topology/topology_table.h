// SPDX-License-Identifier: MIT
// The logical CPUs of a machine, as hwloc or the system's own files describe them, and what follows
// for a process that may use some of them. The same rules for either source.
#ifndef GGML_MACHINE_TOPOLOGY_TABLE_H
#define GGML_MACHINE_TOPOLOGY_TABLE_H

#include <stdbool.h>

#include "ggml-plugin.h"

enum {
    TOPOLOGY_WORDS = 128, // of a set of logical CPUs, of 64 each
    TOPOLOGY_CPUS_MAX = TOPOLOGY_WORDS * 64,
};

// Zeroed: there is no such CPU.
struct topology_cpu {
    uint32_t core;         // the lowest CPU of its core
    uint32_t package;      // below TOPOLOGY_CPUS_MAX, as the next
    uint32_t node;         // of memory (NUMA)
    uint32_t speed;        // of its kind of cores, relative to others; 1: not known, 0: no such CPU
    uint32_t cache_kib[3]; // L1 data, L2, L3 that it uses; 0: not known
};

struct topology_table {
    struct topology_cpu cpus[TOPOLOGY_CPUS_MAX];
    uint32_t n_cpus;         // one more than the highest
    uint32_t margin_percent; // cores that are slower by so much are still of the fastest kind
};

// Whether numbers that a stranger wrote are in range and refer to CPUs of the table. [any-thread]
bool topology_table_valid(const struct topology_cpu *cpus, size_t n_cpus);
// Empties it, in time proportional to what it has. [stream]
void topology_table_clear(struct topology_table *table);

// Whether a set contains only CPUs of the table. [any-thread]
bool topology_table_covers(const struct topology_table *table,
                           const uint64_t allowed[TOPOLOGY_WORDS]);

// What a process has that may use the CPUs of `allowed`, which the table covers; cpu_quota is
// cgroup_cpu_limit(), 0: none. *out_representative is a CPU of the fastest kind, whose caches are
// reported. UNSUPPORTED if `allowed` is empty. [stream]
enum ggml_host_status topology_table_apply(const struct topology_table *table,
                                           const uint64_t allowed[TOPOLOGY_WORDS], double cpu_quota,
                                           struct ggml_host_topology *out_facts,
                                           uint32_t *out_representative);

// The logical CPUs of worker `index` of `count`, and all, of what was applied last. [any-thread]
void topology_table_worker(uint32_t index, uint32_t count, uint64_t out_mask[TOPOLOGY_WORDS]);
const uint64_t *topology_table_allowed(void);

#endif
