// SPDX-License-Identifier: MIT
// The machine as hwloc describes it, where it is installed. Not on Linux.
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/env.h"
#include "base/status.h"
#include "machine/cgroup.h"
#include "machine/topology.h"
#include "machine/topology_plain.h"
#include "machine/topology_system.h"
#include "machine/topology_view.h"

static const struct hwloc_calls *hwloc;
static hwloc_topology_t machine;
static struct topology_view view;
// Without hwloc: in a privileged process, because hwloc reads a dozen variables of the environment
// and loads plugins from a directory that one of them names; and where memory is short.
static bool is_plain;

// --- discovery

// hwloc crashes or hangs where an allocation fails, so that the memory it needs for a large machine
// has to be available. Tested by mmap(): malloc() would change how it requests memory later.
static bool has_memory(void) {
    enum { NEEDED = 32 << 20 };
    void *memory = mmap(NULL, NEEDED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    munmap(memory, NEEDED);
    return true;
}

// NULL on failure.
static hwloc_topology_t load(void) {
    hwloc_topology_t topology = NULL;
    if (!has_memory()) return NULL;
    hwloc = hwloc_calls_open();
    if (!hwloc || hwloc->topology_init(&topology) != 0) return NULL;
    // Disallowed CPUs as well, to find out whether the affinity or a control group narrows the
    // machine.
    hwloc->topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    // No PCI devices: discovering them takes most of the time.
    hwloc->topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc->topology_load(topology) == 0) return topology;
    hwloc->topology_destroy(topology);
    return NULL;
}

enum ggml_host_status topology_system_discover(struct ggml_host_topology *out_facts) {
    memset(out_facts, 0, sizeof(*out_facts));
    if (!ggml_env_privileged()) machine = load();
    is_plain = !machine;
    if (is_plain) {
        const struct topology_plain_source here = {.root = "",
                                                   .cpu_quota = cgroup_cpu_limit_here()};
        return topology_plain_discover(&here, out_facts);
    }
    hwloc_bitmap_t affinity = hwloc->bitmap_alloc();
    const bool has_affinity =
        affinity && hwloc->get_cpubind(machine, affinity, HWLOC_CPUBIND_PROCESS) == 0;
    const struct topology_source source = {
        .hwloc = hwloc,
        .topology = machine,
        .affinity = has_affinity ? affinity : NULL,
        .cpu_quota = cgroup_cpu_limit_here(),
    };
    const enum ggml_host_status status = topology_view_init(&view, &source);
    *out_facts = view.facts;
    if (status != GGML_HOST_OK) topology_view_free(&view);
    hwloc->bitmap_free(affinity);
    return status;
}

// --- binding

static enum ggml_host_status bind_to(hwloc_const_cpuset_t set) {
    if (hwloc->set_cpubind(machine, set, HWLOC_CPUBIND_THREAD) == 0) return GGML_HOST_OK;
    const bool is_missing = errno == ENOSYS;
    return ggml_fail(is_missing ? GGML_HOST_UNSUPPORTED : GGML_HOST_FAILED, "binding a thread: %s",
                     strerror(errno));
}

enum ggml_host_status topology_system_bind_all(void) {
    if (is_plain) return topology_plain_bind_all();
    return bind_to(view.allowed);
}

enum ggml_host_status topology_system_bind_worker(uint32_t index, uint32_t count) {
    if (is_plain) return topology_plain_bind_worker(index, count);
    return bind_to(topology_view_worker(&view, index, count));
}

// Sets the CPUs of the mask that the control groups allow this process.
static void set_mask(hwloc_bitmap_t set, const uint64_t *mask, size_t n_words) {
    const int last = hwloc->bitmap_last(hwloc->topology_get_allowed_cpuset(machine));
    for (int cpu = 0; cpu <= last && (size_t)cpu / 64 < n_words; ++cpu) {
        if (mask[cpu / 64] >> (cpu % 64) & 1) hwloc->bitmap_set(set, (unsigned)cpu);
    }
    hwloc->bitmap_and(set, set, hwloc->topology_get_allowed_cpuset(machine));
}

enum ggml_host_status topology_system_bind_mask(const uint64_t *mask, size_t n_words) {
    if (is_plain) return topology_plain_bind_mask(mask, n_words);
    hwloc_bitmap_t set = hwloc->bitmap_alloc();
    if (!set)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "topology_bind_mask: no memory for the mask");
    set_mask(set, mask, n_words);
    const enum ggml_host_status status =
        hwloc->bitmap_iszero(set)
            ? ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                        "topology_bind_mask: the mask names no CPU that this process may use")
            : bind_to(set);
    hwloc->bitmap_free(set);
    return status;
}
