// SPDX-License-Identifier: MIT
// The registration and its one device.
#ifndef CPU_DEVICE_H
#define CPU_DEVICE_H

#include "ggml-backend-impl.h"

// The backend; static. [any-thread]
ggml_backend_reg_t cpu_reg(void);
// Ends the idle threads. [init]
void cpu_shutdown(void);

#endif
