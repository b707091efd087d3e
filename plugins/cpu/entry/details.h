// SPDX-License-Identifier: MIT
// What ggml-devices shows of the CPU besides its properties (extension "ggml.device-info").
#ifndef CPU_DETAILS_H
#define CPU_DETAILS_H

#include "ggml-ext-device-info.h"

extern const struct ggml_extension_device_info cpu_device_info;

#endif
