// SPDX-License-Identifier: MIT
// Ties the registry to what makes isolated devices, so that every program has it, also one that
// links the library statically and never calls it.
#include "plugin/registry/isolation.h"

#include "isolate/isolate.h"

const struct isolation_maker *isolation_maker(void) {
    static const struct isolation_maker maker = {isolated_device_new, isolated_device_free};
    return &maker;
}
