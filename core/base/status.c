// SPDX-License-Identifier: MIT
// The last error is one struct per thread, which each failure overwrites. Nothing is allocated, so
// that running out of memory can be reported as well.
#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct ggml_saved_error last_error;
static _Thread_local unsigned long fail_count; // never reset; a caller compares two values
// the note of ggml_fail_note(); its status is OK without one
static _Thread_local struct ggml_saved_error noted;

// Messages quote names out of files and plugins, and end on terminals: what a terminal would take
// for a command becomes '?', in place.
static void disarm(char *text) {
    for (unsigned char *p = (unsigned char *)text; *p; ++p) {
        const bool control = (*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f;
        const bool late_control = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0; // C1 in UTF-8
        if (late_control) p[1] = '?';
        if (control || late_control) *p = '?';
    }
}

enum ggml_host_status ggml_fail_v(enum ggml_host_status status, const char *format, va_list args) {
    char text[sizeof(last_error.text)]; // the arguments may point into the old message
    vsnprintf(text, sizeof(text), format, args);
    disarm(text);
    fail_count++;
    last_error.status = status;
    memcpy(last_error.text, text, sizeof(text));
    // A note explains only the failure that follows it directly.
    noted.status = GGML_HOST_OK;
    return status;
}

void ggml_fail_note(enum ggml_host_status status, const char *format, ...) {
    va_list args;
    // No disarm() here: ggml_fail() does it when the note is recorded.
    va_start(args, format);
    vsnprintf(noted.text, sizeof(noted.text), format, args);
    va_end(args);
    noted.status = status;
}

bool ggml_fail_as_noted(void) {
    if (noted.status == GGML_HOST_OK) return false;
    ggml_fail(noted.status, "%s", noted.text);
    return true;
}

unsigned long ggml_fail_count(void) {
    return fail_count;
}

const char *ggml_last_error(void) {
    return last_error.text;
}

enum ggml_host_status ggml_last_status(void) {
    return last_error.status;
}

void ggml_clear_error(void) {
    last_error.status = GGML_HOST_OK;
    last_error.text[0] = '\0';
    noted.status = GGML_HOST_OK;
}

void ggml_error_save(struct ggml_saved_error *out_saved) {
    *out_saved = last_error;
}

void ggml_error_restore(const struct ggml_saved_error *saved) {
    last_error = *saved;
}

// clang-format off
const char *ggml_host_status_text(enum ggml_host_status status) {
    switch ((int)status) {
#define GGML_HOST_STATUS_ROW(number, name, text) case number: return text;
#include "status_list.inl"
    default: return "unknown status";
    }
}
// clang-format on
