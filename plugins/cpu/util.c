// SPDX-License-Identifier: MIT
#include "util.h"

#include <stdarg.h>
#include <stdio.h>

enum ggml_status cpu_fail(enum ggml_status result, enum ggml_host_status status, const char *format,
                          ...) {
    char text[512];
    const struct ggml_host_table *host = ggml_sdk_host();
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (host) host->set_error(host, (int32_t)status, text);
    return result;
}

const char *cpu_op_name(enum ggml_op op) {
    static const char *const names[GGML_OP_COUNT] = {
#define GGML_OP_ROW(number, name, ...) [number] = #name,
#include "op_list.inl"
    };
    return (unsigned)op < GGML_OP_COUNT && names[op] ? names[op] : "?";
}
