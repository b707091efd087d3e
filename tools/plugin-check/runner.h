// SPDX-License-Identifier: MIT
// Runs the selected checks, each in a process with a deadline.
#ifndef PLUGIN_CHECK_RUNNER_H
#define PLUGIN_CHECK_RUNNER_H

#include "check.h"
#include "message.h"

enum { RUNNER_MAX_JOBS = 64 };

struct check_result {
    const struct check *check;
    bool selected;
    const char *exclusion; // reason given by the user, or NULL
    bool unexpected;       // nothing that it excludes failed
    enum verdict verdict;
    const struct check *blocked_by; // that failed, and this or one on the way to it needs; or NULL
    double seconds;
    char text[CHECK_MESSAGE_TEXT];
};

struct runner_options {
    const char *path;
    const char *device;
    uint64_t seed;
    int jobs;
    double deadline; // seconds per check, or per case of one that has several
    bool all_cases;  // instead of some of each operation
    bool verbose;    // leave the checks' output alone
};

// What became of all checks. An excluded check counts as skipped if it failed, and as failed if it
// passed.
struct check_totals {
    int executed; // passed or failed, whatever was excluded
    int passed;
    int failed;
    int skipped;
    int blocked; // of those that were skipped, because a check that they need failed
};

// Runs those of `results` (one per check, in the order of the list) that are selected and fills
// their verdicts. False if no process can be started. [init]
bool runner_run(const struct runner_options *options, struct check_result *results);
struct check_totals runner_totals(const struct check_result *results);
// Whether the result spoils the run. [any-thread]
bool result_is_bad(const struct check_result *result);

#endif
