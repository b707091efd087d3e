// SPDX-License-Identifier: MIT
// Used in place of hwloc_open.c where hwloc is linked: on macOS, whose dynamic linker doesn't
// search the folders of package managers.
#include "machine/topology/hwloc_calls.h"

const struct hwloc_calls *hwloc_calls_open(void) {
    static const struct hwloc_calls calls = {
#define HWLOC_ROW(name) .name = hwloc_##name,
#include "machine/topology/hwloc_list.inl"
    };
    return &calls;
}
