// SPDX-License-Identifier: MIT
// What all parts of the plugin need: failures and settings.
#ifndef CUDA_BASE_UTIL_H
#define CUDA_BASE_UTIL_H

#include "ggml-impl.h"
#include "ggml-plugin.h"

// Tells the hosts why the current call fails. Returns status. [any-thread]
enum ggml_host_status cuda_fail(enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);
// Value of an environment variable, "" if it isn't set. [any-thread]
const char *cuda_config(const char *name);

#endif
