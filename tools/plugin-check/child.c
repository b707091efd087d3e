// SPDX-License-Identifier: MIT
// The side of the checks: one process, one check, one message to the parent.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "message.h"
#include "op_case.h"
#include "state.h"

const struct check check_list[] = {
#define CHECK_ROW(id, rule, needs, function, argument, title)                                      \
    {id, rule, needs, function, argument, title},
#include "check_list.inl"
};
const int check_count = sizeof(check_list) / sizeof(check_list[0]);

bool check_matches(const char *pattern, size_t length, const char *id) {
    if (length > 0 && pattern[length - 1] == '*') return strncmp(pattern, id, length - 1) == 0;
    return strlen(id) == length && strncmp(pattern, id, length) == 0;
}

void check_step(const struct check_run *run, const char *at) {
    snprintf(run->progress->at, sizeof(run->progress->at), "%s", at);
    atomic_fetch_add(&run->progress->n_steps, 1);
}

// _exit: the plugin's own exit handlers are not what is being checked.
static _Noreturn void report(const struct check_run *run, enum verdict verdict, const char *text) {
    struct check_message message = {.magic = CHECK_MESSAGE_MAGIC, .verdict = (uint32_t)verdict};
    snprintf(message.text, sizeof(message.text), "%s", text);
    const ssize_t written = write(run->report_fd, &message, sizeof(message));
    _exit(written == (ssize_t)sizeof(message) ? 0 : 1);
}

void check_fail(const struct check_run *run, const char *format, ...) {
    char text[CHECK_MESSAGE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report(run, VERDICT_FAILED, text);
}

void check_skip(const struct check_run *run, const char *format, ...) {
    char text[CHECK_MESSAGE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report(run, VERDICT_SKIPPED, text);
}

void check_execute(struct check_run *run) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    run->check->run(run);
    report(run, VERDICT_PASSED, "");
}
