// SPDX-License-Identifier: MIT
// One check of a plugin: what it is, and how it tells its verdict. Each runs in a process of its
// own, so a check that ended early leaves nothing to clean up.
#ifndef PLUGIN_CHECK_H
#define PLUGIN_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "ggml-backend.h"

enum verdict {
    VERDICT_PENDING,
    VERDICT_PASSED,
    VERDICT_FAILED,
    VERDICT_SKIPPED,
};

struct check_run;
struct check_progress;

struct check {
    const char *id;    // "area.name", stable
    unsigned rule;     // GP number
    const char *needs; // ids, or areas as "area.*", whose failure makes this one pointless
    void (*run)(struct check_run *run);
    int argument;
    const char *title;
};

// What a check works with.
struct check_run {
    const struct check *check;
    const char *path;   // absolute path of the plugin
    const char *device; // only the device of this name, or NULL
    uint64_t seed;
    bool all_cases; // instead of some of each operation
    int n_left;     // checks that follow in this process
    int report_fd;
    const unsigned char *key;        // CHECK_KEY_SIZE bytes, for its message
    struct check_progress *progress; // shared with the parent
};

extern const struct check check_list[];
extern const int check_count;
// Whether the id is the pattern's first `length` characters, or begins so if they end in '*'.
// [any-thread]
bool check_matches(const char *pattern, size_t length, const char *id);

// Whether the check may follow others of its function in one process, as long as none fails: it
// leaves the process as it was. [any-thread]
bool check_can_share(const struct check *check);
// Runs run->check and n - 1 that follow it in the list in this process and reports to
// run->report_fd, until one fails; does not return. [init]
_Noreturn void check_execute(struct check_run *run, int n);
// Says what the check is at, which gives it a new deadline. [any-thread]
void check_step(const struct check_run *run, const char *at);
// End the check with that verdict. [any-thread]
_Noreturn void check_fail(const struct check_run *run, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);
_Noreturn void check_skip(const struct check_run *run, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);

#define CHECK_THAT(run, condition, ...)                                                            \
    do {                                                                                           \
        if (!(condition)) check_fail(run, __VA_ARGS__);                                            \
    } while (0)

#define CHECK_ROW(id, rule, needs, function, argument, title) void function(struct check_run *run);
#include "check_list.inl"

#endif
