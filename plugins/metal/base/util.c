// SPDX-License-Identifier: MIT
// Failures are recorded by the host, through the table that it gave the plugin.
#include "base/util.h"

#include <stdarg.h>

// Passes the error to the hosts and returns the status.
enum ggml_host_status metal_fail(enum ggml_host_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ggml_sdk_fail_v(status, format, args);
    va_end(args);
    return status;
}
