// SPDX-License-Identifier: MIT
// The registration and its one device.
#ifndef CPU_DEVICE_H
#define CPU_DEVICE_H

#include "ggml-backend-impl.h"

// The backend; static. [any-thread]
ggml_backend_reg_t cpu_reg(void);
// The memory of a device besides its own, up to a NULL: that of repacked weights, at levels that
// multiply with them unless rounding is disabled. [any-thread]
ggml_backend_buffer_type_t *cpu_extra_buffer_types(ggml_backend_dev_t device);
// Ends the idle threads. [init]
void cpu_shutdown(void);

#endif
