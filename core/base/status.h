// SPDX-License-Identifier: MIT
// Statuses and the per-thread last error.
#ifndef GGML_BASE_STATUS_H
#define GGML_BASE_STATUS_H

#include <stdarg.h>

#include "ggml-host.h"

// Records a failure for the calling thread and returns `status`, so that a function can
// `return ggml_fail(...)`. The message names what was being done and what to do. [any-thread]
enum ggml_host_status ggml_fail(enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3) __attribute__((cold));
enum ggml_host_status ggml_fail_v(enum ggml_host_status status, const char *format, va_list args)
    __attribute__((cold));
// Number of failures that the calling thread recorded: a change tells that a callee left a message.
// [any-thread]
unsigned long ggml_fail_count(void);

// Says why something may be about to fail that isn't the caller's failure yet. [any-thread]
void ggml_fail_note(enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3) __attribute__((cold));
// Records the last note as a failure, if there was one since the last failure. [any-thread]
bool ggml_fail_as_noted(void);

// For calls that fail on the way and succeed in the end, which leave the last error alone: keeps
// it, and puts it back. [any-thread]
struct ggml_saved_error {
    enum ggml_host_status status;
    char text[1024];
};
void ggml_error_save(struct ggml_saved_error *out_saved);
void ggml_error_restore(const struct ggml_saved_error *saved);

#endif
