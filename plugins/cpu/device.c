// SPDX-License-Identifier: MIT
#include "device.h"

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "CPU";
}

static size_t reg_device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 0;
}

static struct ggml_backend_reg reg_object = {
    .api_version = GGML_BACKEND_API_VERSION,
    .iface = {.get_name = reg_name, .get_device_count = reg_device_count},
};

ggml_backend_reg_t cpu_reg(void) {
    return &reg_object;
}

void cpu_shutdown(void) {
}
