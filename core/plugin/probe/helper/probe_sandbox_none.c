// SPDX-License-Identifier: MIT
// The sandbox of helpers on systems that have none.
#include <stdio.h>

#include "plugin/probe/helper/probe_sandbox.h"

bool probe_sandbox_prevents_devices(const char *root) {
    (void)root;
    return false;
}

void probe_sandbox_enter(char *out_missing, size_t size) {
    snprintf(out_missing, size,
             "this system has no Landlock and no seccomp, or the helper was built without");
}
