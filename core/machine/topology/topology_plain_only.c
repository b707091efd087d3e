// SPDX-License-Identifier: MIT
// In place of topology_hwloc.c on Linux, and for builds without hwloc's headers.
#include <stdatomic.h>

#include "machine/cgroup.h"
#include "machine/topology/topology_plain.h"
#include "machine/topology/topology_system.h"

static topology_asker *_Atomic asker;

void topology_set_asker(topology_asker *ask) {
    atomic_store(&asker, ask);
}

enum ggml_host_status topology_system_discover(struct ggml_host_topology *out_facts) {
    const struct topology_plain_source here = {
        .root = "", .cpu_quota = cgroup_cpu_limit_here(), .ask = atomic_load(&asker)};
    return topology_plain_discover(&here, out_facts);
}

enum ggml_host_status topology_system_bind_all(void) {
    return topology_plain_bind_all();
}

enum ggml_host_status topology_system_bind_worker(uint32_t index, uint32_t count) {
    return topology_plain_bind_worker(index, count);
}

enum ggml_host_status topology_system_bind_mask(const uint64_t *mask, size_t n_words) {
    return topology_plain_bind_mask(mask, n_words);
}
