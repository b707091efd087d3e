// SPDX-License-Identifier: MIT
// hwloc's description of a machine as a table of its logical CPUs.
#ifndef GGML_MACHINE_HWLOC_TABLE_H
#define GGML_MACHINE_HWLOC_TABLE_H

#include "machine/topology/hwloc_calls.h"
#include "machine/topology/topology_table.h"

// Loads this machine, CPUs included that this process may not use. NULL if hwloc can't, or where
// memory is so short that hwloc would crash. [init]
hwloc_topology_t hwloc_table_load(const struct hwloc_calls *hwloc);

// Fills an empty table. CPUs that are too many for it are left out. [stream]
void hwloc_table_fill(const struct hwloc_calls *hwloc, hwloc_topology_t topology,
                      struct topology_table *out_table);

#endif
