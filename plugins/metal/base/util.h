// SPDX-License-Identifier: MIT
// What all parts of the plugin need: failures.
#ifndef METAL_BASE_UTIL_H
#define METAL_BASE_UTIL_H

#include "ggml-impl.h"
#include "ggml-plugin.h"

// Tells the hosts why the current call fails. Returns status. [any-thread]
enum ggml_host_status metal_fail(enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);

#endif
