// SPDX-License-Identifier: MIT
// In place of hwloc_open.c where the linker is told of hwloc: macOS, whose dynamic linker does not
// look where package managers install.
#include "machine/hwloc_calls.h"

const struct hwloc_calls *hwloc_calls_open(void) {
    static const struct hwloc_calls calls = {
#define HWLOC_ROW(name) .name = hwloc_##name,
#include "machine/hwloc_list.inl"
    };
    return &calls;
}
