// SPDX-License-Identifier: MIT
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

// --- what has to be done before what -------------------------------------------------------------

static bool is_needed(const struct check *check, const char *id) {
    const char *at = check->needs;
    while (*at) {
        const size_t length = strcspn(at, " ");
        if (check_matches(at, length, id)) return true;
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

enum readiness { READY, WAITING, POINTLESS };

// A check that does not apply to the plugin stands in nobody's way.
static enum readiness readiness(const struct check_result *results, const struct check *check,
                                const struct check **out_why) {
    *out_why = NULL;
    for (int i = 0; i < check_count; ++i) {
        const struct check_result *other = &results[i];
        if (!other->selected || other->check == check || !is_needed(check, other->check->id))
            continue;
        if (other->verdict == VERDICT_PENDING) return WAITING;
        if (other->verdict != VERDICT_FAILED && !other->blocked) continue;
        *out_why = other->check;
        return POINTLESS;
    }
    return READY;
}

// --- all of them ---------------------------------------------------------------------------------

// Next check that can start; those that became pointless are skipped on the way.
static struct check_result *next_ready(struct check_result *results, const bool *begun,
                                       bool *out_left) {
    *out_left = false;
    for (int i = 0; i < check_count; ++i) {
        struct check_result *result = &results[i];
        const struct check *why;
        if (!result->selected || result->verdict != VERDICT_PENDING || begun[i]) continue;
        switch (readiness(results, result->check, &why)) {
        case READY: return result;
        case WAITING: *out_left = true; break;
        case POINTLESS:
            result->verdict = VERDICT_SKIPPED;
            result->blocked = true;
            snprintf(result->text, sizeof(result->text), "needs %s", why->id);
            break;
        }
    }
    return NULL;
}

// An exclusion may be of several checks: one of them has to fail.
static void settle_exclusions(struct check_result *results) {
    for (int i = 0; i < check_count; ++i) {
        bool needed = false;
        for (int j = 0; j < check_count && results[i].exclusion; ++j) {
            needed = needed || (results[j].exclusion == results[i].exclusion &&
                                results[j].verdict == VERDICT_FAILED);
        }
        results[i].unexpected = results[i].exclusion && !needed;
    }
}

bool runner_run(const struct runner_options *options, struct check_result *results) {
    struct job jobs[RUNNER_MAX_JOBS] = {{0}};
    const int n_jobs = options->jobs < RUNNER_MAX_JOBS ? options->jobs : RUNNER_MAX_JOBS;
    bool *begun = calloc((size_t)check_count, sizeof(*begun));
    int running = 0;
    bool left = true, good = begun != NULL;
    while (good && (running > 0 || left)) {
        for (int i = 0; i < n_jobs && good; ++i) {
            struct check_result *next = jobs[i].result ? NULL : next_ready(results, begun, &left);
            if (!next) continue;
            good = job_start(&jobs[i], options, next, jobs, n_jobs);
            if (!good) break;
            begun[next - results] = true;
            ++running;
            left = true;
        }
        if (running > 0) job_wait(jobs, n_jobs);
        for (int i = 0; i < n_jobs; ++i) {
            if (jobs[i].result && job_finish(&jobs[i], good ? options->deadline : 0)) --running;
        }
    }
    while (running > 0) {
        for (int i = 0; i < n_jobs; ++i) {
            if (jobs[i].result && job_finish(&jobs[i], 0)) --running;
        }
    }
    for (int i = 0; i < n_jobs; ++i)
        job_free(&jobs[i]);
    free(begun);
    settle_exclusions(results);
    return good;
}

bool result_is_bad(const struct check_result *result) {
    if (!result->selected) return false;
    if (result->exclusion) return result->unexpected && result->verdict == VERDICT_PASSED;
    return result->verdict == VERDICT_FAILED;
}

struct check_totals runner_totals(const struct check_result *results) {
    struct check_totals totals = {0, 0, 0, 0};
    for (int i = 0; i < check_count; ++i) {
        const struct check_result *result = &results[i];
        if (!result->selected) continue;
        if (result->verdict != VERDICT_SKIPPED) ++totals.executed;
        if (result_is_bad(result)) {
            ++totals.failed;
        } else if (result->exclusion || result->verdict == VERDICT_SKIPPED) {
            ++totals.skipped;
        } else {
            ++totals.passed;
        }
    }
    return totals;
}
