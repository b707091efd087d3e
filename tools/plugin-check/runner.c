// SPDX-License-Identifier: MIT
// Starts checks whose needs are met, as many processes at a time as there are jobs; a check whose
// needs failed is skipped.
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job.h"
#include "terminal.h"

enum { MAX_SHARED = 16 };

struct plan {
    struct check_result *results;
    bool *needs; // which checks need which others
    bool *begun; // of each check: whether it is or was under way
    bool left;   // some can't start yet
    struct job jobs[RUNNER_MAX_JOBS];
    int n_jobs;
    int running;
};

// --- what has to be done before what -------------------------------------------------------------

// Whether a check names this id, or its area, among its needs.
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

// The checks that each one needs, as rows of a square; NULL without memory.
static bool *new_needs(void) {
    const size_t n = (size_t)check_count;
    bool *needs = calloc(n, n);
    for (size_t i = 0; i < n * n && needs; ++i)
        needs[i] = i / n != i % n && is_needed(&check_list[i / n], check_list[i % n].id);
    return needs;
}

enum readiness { READY, WAITING, POINTLESS };

// A check that does not apply to the plugin is no reason to fail.
static enum readiness readiness(const struct plan *plan, int check, const struct check **out_why) {
    const bool *needs = plan->needs + (size_t)check * (size_t)check_count;
    *out_why = NULL;
    for (int i = 0; i < check_count; ++i) {
        const struct check_result *other = &plan->results[i];
        if (!needs[i] || !other->selected) continue;
        if (other->verdict == VERDICT_PENDING) return WAITING;
        if (other->verdict != VERDICT_FAILED && !other->blocked_by) continue;
        *out_why = other->check;
        return POINTLESS;
    }
    return READY;
}

// --- all of them ---------------------------------------------------------------------------------

// Says which check failed, as one failure may block most of the list.
static void block(struct check_result *result, const struct check_result *needed) {
    result->verdict = VERDICT_SKIPPED;
    result->blocked_by = needed->blocked_by ? needed->blocked_by : needed->check;
    if (needed->blocked_by)
        snprintf(result->text, sizeof(result->text), "needs %s; %s failed", needed->check->id,
                 result->blocked_by->id);
    else
        snprintf(result->text, sizeof(result->text), "needs %s, which failed", needed->check->id);
}

// Next check that can start; those that became pointless are skipped on the way. Sets plan->left if
// some can't start yet.
static struct check_result *next_ready(struct plan *plan) {
    plan->left = false;
    for (int i = 0; i < check_count; ++i) {
        struct check_result *result = &plan->results[i];
        const struct check *why;
        if (!result->selected || result->verdict != VERDICT_PENDING || plan->begun[i]) continue;
        switch (readiness(plan, i, &why)) {
        case READY: return result;
        case WAITING: plan->left = true; break;
        case POINTLESS: block(result, &plan->results[why - check_list]); break;
        }
    }
    return NULL;
}

// An exclusion may be of several checks: one of them has to fail.
static void resolve_exclusions(struct check_result *results) {
    for (int i = 0; i < check_count; ++i) {
        bool needed = false;
        for (int j = 0; j < check_count && results[i].exclusion; ++j) {
            needed = needed || (results[j].exclusion == results[i].exclusion &&
                                results[j].verdict == VERDICT_FAILED);
        }
        results[i].unexpected = results[i].exclusion && !needed;
    }
}

// How many checks from `first` on go into one process.
static int share(const struct plan *plan, int first) {
    const struct check *check = &check_list[first];
    int n = 1;
    while (n < MAX_SHARED && first + n < check_count && check_can_share(&check[n]) &&
           check[n].run == check->run && strcmp(check[n].needs, check->needs) == 0 &&
           plan->results[first + n].selected &&
           plan->results[first + n].verdict == VERDICT_PENDING && !plan->begun[first + n])
        ++n;
    return n;
}

// Starts what can start. False if there is no process to be had.
static bool start_jobs(struct plan *plan, const struct runner_options *options) {
    for (int i = 0; i < plan->n_jobs; ++i) {
        struct check_result *next = plan->jobs[i].result ? NULL : next_ready(plan);
        if (!next) continue;
        const int first = (int)(next - plan->results), n = share(plan, first);
        if (!job_start(&plan->jobs[i], options, next, n, plan->jobs, plan->n_jobs)) return false;
        memset(&plan->begun[first], true, (size_t)n);
        ++plan->running;
        plan->left = true;
    }
    return true;
}

// What a process with several checks left over begins again.
static void finish_jobs(struct plan *plan, double deadline) {
    for (int i = 0; i < plan->n_jobs; ++i) {
        struct job *job = &plan->jobs[i];
        if (!job->result || !job_finish(job, deadline)) continue;
        memset(&plan->begun[job->rest - plan->results], false, (size_t)job->n_left);
        plan->left = plan->left || job->n_left > 0;
        --plan->running;
    }
}

// A line on a terminal from the second second on, without a thread: the checks count those of
// their processes, which are forked.
static void show_progress(const struct check_result *results, time_t start, time_t *shown) {
    int done = 0, selected = 0;
    const time_t now = time(NULL);
    if (now - start < 1 || now == *shown || !terminal_is_capable(stderr)) return;
    for (int i = 0; i < check_count; ++i) {
        selected += results[i].selected;
        done += results[i].selected && results[i].verdict != VERDICT_PENDING;
    }
    fprintf(stderr, "\r%d of %d checks, %ld s\033[K", done, selected, (long)(now - start));
    fflush(stderr);
    *shown = now;
}

// Runs all selected checks. False if processes can't be started; those that run are waited for
// all the same.
bool runner_run(const struct runner_options *options, struct check_result *results) {
    struct plan plan = {.results = results, .left = true};
    const time_t start = time(NULL);
    time_t shown = 0;
    bool good;
    plan.n_jobs = options->jobs < RUNNER_MAX_JOBS ? options->jobs : RUNNER_MAX_JOBS;
    plan.begun = calloc((size_t)check_count, sizeof(*plan.begun));
    plan.needs = new_needs();
    good = plan.begun && plan.needs;
    while (good && (plan.running > 0 || plan.left)) {
        good = start_jobs(&plan, options);
        if (plan.running > 0) job_wait(plan.jobs, plan.n_jobs);
        finish_jobs(&plan, options->deadline);
        if (!options->verbose) show_progress(results, start, &shown);
    }
    if (shown) fputs("\r\033[K", stderr);
    while (plan.running > 0)
        finish_jobs(&plan, 0);
    for (int i = 0; i < plan.n_jobs; ++i)
        job_free(&plan.jobs[i]);
    free(plan.needs);
    free(plan.begun);
    resolve_exclusions(results);
    return good;
}

bool result_is_bad(const struct check_result *result) {
    if (!result->selected) return false;
    if (result->exclusion) return result->unexpected && result->verdict == VERDICT_PASSED;
    return result->verdict == VERDICT_FAILED;
}

// Excluded checks that fail count as skipped; ones that pass count as failed.
struct check_totals runner_totals(const struct check_result *results) {
    struct check_totals totals = {0};
    for (int i = 0; i < check_count; ++i) {
        const struct check_result *result = &results[i];
        if (!result->selected) continue;
        if (result->verdict != VERDICT_SKIPPED) ++totals.executed;
        if (result_is_bad(result)) {
            ++totals.failed;
        } else if (result->exclusion || result->verdict == VERDICT_SKIPPED) {
            ++totals.skipped;
            totals.blocked += result->blocked_by != NULL;
        } else {
            ++totals.passed;
        }
    }
    return totals;
}
