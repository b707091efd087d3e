// SPDX-License-Identifier: MIT
// The CPU backend in the registry.
#ifndef GGML_CPU_API_FIND_H
#define GGML_CPU_API_FIND_H

#include "ggml-backend.h"
#include "ggml-plugin-cpu.h"

// First device of type CPU whose backend returns GGML_CPU_API_PROC; plugins are loaded if there
// is none. NULL after telling why `function` fails. [any-thread]
ggml_backend_dev_t cpu_api_device(const char *function);
// Its functions, or NULL. [any-thread]
const struct ggml_cpu_api *cpu_api_find(const char *function);
// Functions of a device's backend, or NULL. [any-thread]
const struct ggml_cpu_api *cpu_api_of(ggml_backend_dev_t device);
// The device that a table belongs to, or NULL if it is gone. [any-thread]
ggml_backend_dev_t cpu_api_device_of(const struct ggml_cpu_api *api);

#endif
