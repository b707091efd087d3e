// SPDX-License-Identifier: MIT
// The machine as hwloc describes it, where it is installed. Not on Linux.
#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/status.h"
#include "machine/cgroup.h"
#include "machine/topology/hwloc_table.h"
#include "machine/topology/topology.h"
#include "machine/topology/topology_plain.h"
#include "machine/topology/topology_system.h"

static const struct hwloc_calls *hwloc;
static hwloc_topology_t machine;
// Without hwloc: in a privileged process, because hwloc reads a dozen variables of the environment
// and loads plugins from a directory that one of them names; and where memory is short.
static bool is_plain;

// --- discovery

static hwloc_topology_t load(void) {
    hwloc = hwloc_calls_open();
    return hwloc ? hwloc_table_load(hwloc) : NULL;
}

// The CPUs that control groups and the affinity of this process allow.
static void find_allowed(uint64_t out_allowed[TOPOLOGY_WORDS], uint32_t n_cpus) {
    hwloc_const_cpuset_t allowed = hwloc->topology_get_allowed_cpuset(machine);
    hwloc_bitmap_t affinity = hwloc->bitmap_alloc();
    const bool known =
        affinity && hwloc->get_cpubind(machine, affinity, HWLOC_CPUBIND_PROCESS) == 0;
    memset(out_allowed, 0, TOPOLOGY_WORDS * sizeof(*out_allowed));
    for (uint32_t cpu = 0; cpu < n_cpus; ++cpu) {
        if (hwloc->bitmap_isset(allowed, cpu) && (!known || hwloc->bitmap_isset(affinity, cpu)))
            out_allowed[cpu / 64] |= UINT64_C(1) << cpu % 64;
    }
    hwloc->bitmap_free(affinity);
}

void topology_set_asker(topology_asker *ask) {
    (void)ask;
}

enum ggml_host_status topology_system_discover(struct ggml_host_topology *out_facts) {
    static struct topology_table table;
    uint64_t allowed[TOPOLOGY_WORDS];
    uint32_t representative;
    if (!ggml_env_privileged()) machine = load();
    is_plain = !machine;
    if (is_plain) {
        const struct topology_plain_source here = {.root = "",
                                                   .cpu_quota = cgroup_cpu_limit_here()};
        return topology_plain_discover(&here, out_facts);
    }
    hwloc_table_fill(hwloc, machine, &table);
    find_allowed(allowed, table.n_cpus);
    return topology_table_apply(&table, allowed, cgroup_cpu_limit_here(), out_facts,
                                &representative);
}

// --- binding

// Those CPUs of the mask that control groups allow this process.
enum ggml_host_status topology_system_bind_mask(const uint64_t *mask, size_t n_words) {
    if (is_plain) return topology_plain_bind_mask(mask, n_words);
    hwloc_bitmap_t set = hwloc->bitmap_alloc();
    if (!set)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "topology_bind_mask: no memory for the mask");
    enum ggml_host_status status = GGML_HOST_OK;
    hwloc_const_cpuset_t allowed = hwloc->topology_get_allowed_cpuset(machine);
    const int last = hwloc->bitmap_last(allowed);
    for (int cpu = 0; cpu <= last && (size_t)cpu / 64 < n_words; ++cpu) {
        if (mask[cpu / 64] >> (cpu % 64) & 1) hwloc->bitmap_set(set, (unsigned)cpu);
    }
    hwloc->bitmap_and(set, set, allowed);
    if (hwloc->bitmap_iszero(set)) {
        status = ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                           "topology_bind_mask: the mask names no CPU that this process may use");
    } else if (hwloc->set_cpubind(machine, set, HWLOC_CPUBIND_THREAD) != 0) {
        status = ggml_fail(errno == ENOSYS ? GGML_HOST_UNSUPPORTED : GGML_HOST_FAILED,
                           "binding a thread: %s", strerror(errno));
    }
    hwloc->bitmap_free(set);
    return status;
}

enum ggml_host_status topology_system_bind_all(void) {
    if (is_plain) return topology_plain_bind_all();
    return topology_system_bind_mask(topology_table_allowed(), TOPOLOGY_WORDS);
}

enum ggml_host_status topology_system_bind_worker(uint32_t index, uint32_t count) {
    uint64_t set[TOPOLOGY_WORDS];
    if (is_plain) return topology_plain_bind_worker(index, count);
    topology_table_worker(index, count, set);
    return topology_system_bind_mask(set, TOPOLOGY_WORDS);
}
