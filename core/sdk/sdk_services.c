// SPDX-License-Identifier: MIT
// Inside a plugin: the services of the core (base/mem.h, base/status.h, logging) provided by the
// host.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"

enum { DEFAULT_ALIGNMENT = 16 }; // what malloc() guarantees on 64-bit systems

static _Thread_local unsigned long fail_count;

void *ggml_mem_aligned_alloc(size_t alignment, size_t size) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    void *memory = host && size > 0 ? host->alloc(host, size, alignment) : NULL;
    ggml_sdk_host_release(host);
    return memory; // NULL while no host is attached, as when memory runs out
}

void ggml_mem_aligned_free(void *memory) {
    if (!memory) return;
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    if (host) host->free(host, memory);
    ggml_sdk_host_release(host);
}

void *ggml_mem_alloc(size_t size) {
    return ggml_mem_aligned_alloc(DEFAULT_ALIGNMENT, size);
}

void *ggml_mem_calloc(size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / size) return NULL;
    void *memory = ggml_mem_alloc(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

char *ggml_mem_strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = ggml_mem_alloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void ggml_mem_free(void *memory) {
    ggml_mem_aligned_free(memory);
}

// Counted here as well: ggml_fail_count() has to change in this image, too.
enum ggml_host_status ggml_fail_v(enum ggml_host_status status, const char *format, va_list args) {
    fail_count++;
    return ggml_sdk_fail_v(status, format, args);
}

unsigned long ggml_fail_count(void) {
    return fail_count;
}

bool ggml_fail_as_noted(void) {
    return false; // the host has the notes
}

void ggml_log_internal(enum ggml_log_level level, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    if (host) host->log(host, (int32_t)level, text);
    ggml_sdk_host_release(host);
}

// A plugin's own assertion failed: the process can't go on.
void ggml_abort(const char *file, int line, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ggml_log_internal(GGML_LOG_LEVEL_ERROR, "%s:%d: %s\n", file, line, text);
    abort();
}
