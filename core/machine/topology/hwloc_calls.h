// SPDX-License-Identifier: MIT
// hwloc, where it is installed. It is opened at run time rather than linked, so that programs need
// nothing but the C library. Functions that hwloc.h defines inline call it directly and must not be
// used here.
#ifndef GGML_MACHINE_HWLOC_CALLS_H
#define GGML_MACHINE_HWLOC_CALLS_H

#include <hwloc.h>
#include <hwloc/cpukinds.h>

struct hwloc_calls {
#define HWLOC_ROW(name) __typeof__(hwloc_##name) *name;
#include "machine/topology/hwloc_list.inl"
};

// Maps hwloc, for the rest of the process. NULL if it is not installed, too old, or there is no
// memory for it. Once, before threads ask for the topology; not in a privileged process. [init]
const struct hwloc_calls *hwloc_calls_open(void);

#endif
