// SPDX-License-Identifier: MIT
// hwloc where it is installed. It is not linked, so that a program which has this library needs
// nothing else than the C library; what hwloc.h defines inline calls it directly and is not for
// use here.
#ifndef GGML_MACHINE_HWLOC_CALLS_H
#define GGML_MACHINE_HWLOC_CALLS_H

#include <hwloc.h>
#include <hwloc/cpukinds.h>

struct hwloc_calls {
#define HWLOC_ROW(name) __typeof__(hwloc_##name) *name;
#include "machine/hwloc_list.inl"
};

// Maps hwloc, for the rest of the process. NULL if it is not installed, too old, or there is no
// memory for it. Once, before threads ask for the topology; not in a privileged process. [init]
const struct hwloc_calls *hwloc_calls_open(void);

#endif
