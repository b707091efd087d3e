// SPDX-License-Identifier: MIT
// The driver's library, found when the plugin starts.
#ifndef CUDA_DEVICE_LOADER_H
#define CUDA_DEVICE_LOADER_H

#include <stdbool.h>

#include "base/driver_api.h"

// Opens libcuda.so.1 and initialises it. False after set_error: NO_DEVICE where there is no driver,
// it is too old or it has no device. [init]
bool cuda_loader_start(void);
// What was found; the functions stay valid as long as the process: drivers leave threads behind.
// [any-thread]
const struct cu_api *cuda_api(void);
// As 1000 * major + 10 * minor. [any-thread]
int cuda_driver_version(void);
// What the driver calls an error. [any-thread]
const char *cuda_error_name(CUresult error);

#endif
