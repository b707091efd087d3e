// SPDX-License-Identifier: MIT
#include "base/util.h"

#include <stdarg.h>

enum ggml_host_status cuda_fail(enum ggml_host_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ggml_sdk_fail_v(status, format, args);
    va_end(args);
    return status;
}

const char *cuda_config(const char *name) {
    const struct ggml_host_table *host = ggml_sdk_host();
    const char *value = host ? host->get_config(host, name) : NULL;
    return value ? value : "";
}
