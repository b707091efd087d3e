// SPDX-License-Identifier: MIT
// What the plugin returns to ggml_backend_reg_get_proc_address().
#ifndef CPU_API_H
#define CPU_API_H

#include "ggml-backend-impl.h"
#include "ggml-plugin-cpu.h"

const struct ggml_cpu_api *cpu_api(void);
// Address of a function or table, or NULL. [any-thread]
void *cpu_proc_address(ggml_backend_reg_t reg, const char *name);

#endif
