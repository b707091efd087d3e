// SPDX-License-Identifier: MIT
#include "host/live.h"

void host_live_add(ggml_backend_dev_t device) {
    (void)device;
}

void host_live_remove(ggml_backend_dev_t device) {
    (void)device;
}
