// SPDX-License-Identifier: MIT
// In the helper process: hwloc, opened where it is installed.
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "machine/topology/hwloc_table.h"
#include "plugin/probe/probe_machine.h"

// hwloc's variables make other machines of this one, and name folders whose libraries it maps.
static void clear_environment(void) {
    static const char prefix[] = "HWLOC_";
    char **to = environ;
    for (char **from = environ; from && *from; ++from)
        if (strncmp(*from, prefix, sizeof(prefix) - 1) != 0) *to++ = *from;
    if (to) *to = NULL;
}

void probe_machine_take(struct probe_result *out_result) {
    static struct topology_table table;
    clear_environment();
    const struct hwloc_calls *hwloc = hwloc_calls_open();
    hwloc_topology_t topology = hwloc ? hwloc_table_load(hwloc) : NULL;
    if (topology) hwloc_table_fill(hwloc, topology, &table);
    const char *failure = hwloc ? "hwloc can't read the machine" : "hwloc is not installed";
    if (table.n_cpus == 0) {
        probe_result_fail(out_result, GGML_PLUGIN_STAGE_READY, GGML_HOST_UNSUPPORTED, "%s",
                          failure);
        return;
    }
    *out_result = (struct probe_result){.stage = GGML_PLUGIN_STAGE_READY,
                                        .message = "",
                                        .missing = "",
                                        .n_cpus = table.n_cpus,
                                        .cpus = table.cpus};
}
