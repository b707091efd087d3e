// SPDX-License-Identifier: MIT
// Inside a plugin nothing is counted: the host counts what it hands to the application.
#include "ggml-plugin.h"
#include "plugin/registry/live.h"

void host_live_add(ggml_backend_dev_t device) {
    (void)device;
}

void host_live_remove(ggml_backend_dev_t device) {
    (void)device;
}

int host_device_minor(ggml_backend_dev_t device) {
    (void)device;
    return GGML_CONTRACT_MINOR;
}
