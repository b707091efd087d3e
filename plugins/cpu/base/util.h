// SPDX-License-Identifier: MIT
// Errors.
#ifndef CPU_UTIL_H
#define CPU_UTIL_H

#include "ggml-plugin.h"

// Tells the host why the current call fails and returns `result`. [any-thread]
enum ggml_status cpu_fail(enum ggml_status result, enum ggml_host_status status, const char *format,
                          ...) GGML_ATTRIBUTE_FORMAT(3, 4);

#endif
