// SPDX-License-Identifier: MIT
// The side of the checks: one process, one check, one message to the parent.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "crash.h"
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
    const size_t length = strnlen(at, sizeof(run->progress->at) - 1);
    memcpy(run->progress->at, at, length);
    run->progress->at[length] = '\0';
    atomic_fetch_add(&run->progress->n_steps, 1);
}

bool check_can_share(const struct check *check) {
    return check->run == op_conformance;
}

static void report(const struct check_run *run, enum verdict verdict, const char *text) {
    struct check_message message = {.magic = CHECK_MESSAGE_MAGIC, .verdict = (uint32_t)verdict};
    memcpy(message.key, run->key, sizeof(message.key));
    snprintf(message.text, sizeof(message.text), "%s", text);
    if (write(run->report_fd, &message, sizeof(message)) != (ssize_t)sizeof(message)) _exit(1);
}

// Where a check that is skipped goes on with the next one.
static jmp_buf next_check;

// _exit: the plugin's own exit handlers are not what is being checked.
void check_fail(const struct check_run *run, const char *format, ...) {
    char text[CHECK_MESSAGE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report(run, VERDICT_FAILED, text);
    _exit(0);
}

void check_skip(const struct check_run *run, const char *format, ...) {
    char text[CHECK_MESSAGE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report(run, VERDICT_SKIPPED, text);
    if (run->n_left == 0) _exit(0);
    longjmp(next_check, 1);
}

void check_execute(struct check_run *run, int n) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    crash_watch(run);
    for (run->n_left = n - 1; run->n_left >= 0; --run->n_left, ++run->check) {
        run->progress->at[0] = '\0';
        if (setjmp(next_check) != 0) continue;
        run->check->run(run);
        report(run, VERDICT_PASSED, "");
    }
    _exit(0);
}
