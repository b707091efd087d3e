// SPDX-License-Identifier: MIT
// Counts packages, cores of both kinds and nodes among the CPUs that may be used, and orders the
// cores for workers. Sets of CPUs have a fixed size, so that nothing is allocated.
#include "machine/topology/topology_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "machine/topology/topology_system.h"

struct core {
    bool is_slow;
    uint32_t package;
    uint32_t cpu; // the first allowed one
};

// Result of the last call of topology_table_apply().
static struct {
    uint64_t allowed[TOPOLOGY_WORDS];
    struct core cores[TOPOLOGY_CPUS_MAX];  // performance cores first, each kind by packages
    uint16_t first_cpu[TOPOLOGY_CPUS_MAX]; // by a CPU: the first allowed one of its core
    uint32_t n_cpus, n_cores, n_performance_cores;
} machine;

static bool has(const uint64_t *set, uint32_t cpu) {
    return set[cpu / 64] >> cpu % 64 & 1;
}

static void add(uint64_t *set, uint32_t cpu) {
    set[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static uint32_t count(const uint64_t *set, uint32_t n_cpus) {
    uint32_t n = 0;
    for (uint32_t cpu = 0; cpu < n_cpus; ++cpu)
        n += has(set, cpu);
    return n;
}

// --- the table -----------------------------------------------------------------------------------

void topology_table_clear(struct topology_table *table) {
    memset(table->cpus, 0, table->n_cpus * sizeof(table->cpus[0]));
    table->n_cpus = table->margin_percent = 0;
}

bool topology_table_covers(const struct topology_table *table,
                           const uint64_t allowed[TOPOLOGY_WORDS]) {
    for (uint32_t cpu = 0; cpu < TOPOLOGY_CPUS_MAX; ++cpu) {
        if (has(allowed, cpu) && (cpu >= table->n_cpus || table->cpus[cpu].speed == 0))
            return false;
    }
    return true;
}

// --- what follows --------------------------------------------------------------------------------

// The least speed of the fastest kind of cores among `allowed`, NULL: of the machine. Cores of one
// kind may be allowed a boost of some percent more than others.
static uint32_t least_fast(const struct topology_table *table, const uint64_t *allowed) {
    uint32_t fastest = 0;
    for (uint32_t cpu = 0; cpu < table->n_cpus; ++cpu) {
        if (allowed && !has(allowed, cpu)) continue;
        if (table->cpus[cpu].speed > fastest) fastest = table->cpus[cpu].speed;
    }
    return fastest - (uint32_t)((uint64_t)fastest * table->margin_percent / 100);
}

// Performance cores of the whole machine, whether or not they may be used.
static uint32_t count_performance_cores(const struct topology_table *table) {
    const uint32_t least = least_fast(table, NULL);
    uint32_t n = 0;
    for (uint32_t cpu = 0; cpu < table->n_cpus; ++cpu)
        n += table->cpus[cpu].speed >= least && table->cpus[cpu].core == cpu;
    return n;
}

static int compare_cores(const void *a, const void *b) {
    const struct core *x = a, *y = b;
    if (x->is_slow != y->is_slow) return x->is_slow ? 1 : -1;
    if (x->package != y->package) return x->package < y->package ? -1 : 1;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

// Sorts the CPUs that may be used into cores of both kinds. Cores of a package follow each other,
// so that few workers are spread over packages however the system numbers CPUs.
static void find_cores(const struct topology_table *table, uint32_t *out_representative) {
    const uint32_t least = least_fast(table, machine.allowed);
    bool found = false;
    for (uint32_t cpu = 0; cpu < table->n_cpus; ++cpu) {
        const struct topology_cpu *entry = &table->cpus[cpu];
        if (!has(machine.allowed, cpu)) continue;
        const bool is_slow = entry->speed < least;
        if (!is_slow && !found) *out_representative = cpu;
        found |= !is_slow;
        uint32_t first = entry->core;
        while (!has(machine.allowed, first) || table->cpus[first].core != entry->core)
            ++first;
        machine.first_cpu[cpu] = (uint16_t)first;
        if (first != cpu) continue;
        machine.cores[machine.n_cores++] = (struct core){is_slow, entry->package, cpu};
        machine.n_performance_cores += !is_slow;
    }
    qsort(machine.cores, machine.n_cores, sizeof(machine.cores[0]), compare_cores);
}

// Packages or nodes with a CPU that may be used; one where the source knows none.
static uint32_t count_distinct(const struct topology_table *table, bool of_nodes) {
    uint64_t seen[TOPOLOGY_WORDS] = {0};
    for (uint32_t cpu = 0; cpu < table->n_cpus; ++cpu) {
        const struct topology_cpu *entry = &table->cpus[cpu];
        if (has(machine.allowed, cpu)) add(seen, of_nodes ? entry->node : entry->package);
    }
    return count(seen, TOPOLOGY_CPUS_MAX);
}

enum ggml_host_status topology_table_apply(const struct topology_table *table,
                                           const uint64_t allowed[TOPOLOGY_WORDS], double cpu_quota,
                                           struct ggml_host_topology *out_facts,
                                           uint32_t *out_representative) {
    memset(out_facts, 0, sizeof(*out_facts));
    *out_representative = 0;
    memcpy(machine.allowed, allowed, sizeof(machine.allowed));
    machine.n_cpus = table->n_cpus;
    machine.n_cores = machine.n_performance_cores = 0;
    out_facts->n_pus = count(allowed, table->n_cpus);
    if (out_facts->n_pus == 0) {
        return ggml_fail(GGML_HOST_UNSUPPORTED, "topology: none of the machine's CPUs is allowed");
    }
    find_cores(table, out_representative);
    out_facts->size = (uint32_t)sizeof(*out_facts);
    out_facts->n_cores = machine.n_cores;
    out_facts->n_performance_cores = machine.n_performance_cores;
    out_facts->n_packages = count_distinct(table, false);
    out_facts->n_numa_nodes = count_distinct(table, true);
    const uint32_t *kib = table->cpus[*out_representative].cache_kib;
    out_facts->l1d_bytes = (uint64_t)kib[0] << 10;
    out_facts->l2_bytes = (uint64_t)kib[1] << 10;
    out_facts->l3_bytes = (uint64_t)kib[2] << 10;
    const bool narrows = count_performance_cores(table) > machine.n_performance_cores;
    topology_bound_threads(out_facts, narrows, cpu_quota);
    return GGML_HOST_OK;
}

// Spreads few workers evenly over the performance cores, so that they share as few caches as
// possible; more workers than that take all cores in turn.
void topology_table_worker(uint32_t index, uint32_t n_workers, uint64_t out_mask[TOPOLOGY_WORDS]) {
    const uint64_t n_performance = machine.n_performance_cores;
    const uint64_t wanted =
        n_workers <= n_performance ? index * n_performance / n_workers : index % machine.n_cores;
    const uint32_t first = machine.cores[wanted].cpu;
    memset(out_mask, 0, TOPOLOGY_WORDS * sizeof(*out_mask));
    for (uint32_t cpu = first; cpu < machine.n_cpus; ++cpu)
        if (has(machine.allowed, cpu) && machine.first_cpu[cpu] == first) add(out_mask, cpu);
}

const uint64_t *topology_table_allowed(void) {
    return machine.allowed;
}
