// SPDX-License-Identifier: MIT
// Whether a table that came from elsewhere may be used. Reading probe messages needs this on every
// system, also where no table is made (Windows).
#include "machine/topology/topology_table.h"

bool topology_table_valid(const struct topology_cpu *cpus, size_t n_cpus) {
    if (n_cpus == 0 || n_cpus > TOPOLOGY_CPUS_MAX) return false;
    for (size_t i = 0; i < n_cpus; ++i) {
        const struct topology_cpu *cpu = &cpus[i];
        if (cpu->core > i || cpu->package >= TOPOLOGY_CPUS_MAX || cpu->node >= TOPOLOGY_CPUS_MAX)
            return false;
        const struct topology_cpu *first = &cpus[cpu->core];
        if (cpu->speed > 0 && (first->speed == 0 || first->core != cpu->core)) return false;
    }
    return true;
}
