// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// A process may be gone while something that it left holds the pipe: look at least this often.
enum { TICK_MS = 50, MAX_JOBS = 64 };

extern char **environ;

struct job {
    struct check_result *result; // NULL: free
    pid_t pid;
    int fd;
    double started;
    struct check_message message;
    size_t received;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// --- what has to be done before what -------------------------------------------------------------

static bool pattern_matches(const char *pattern, size_t length, const char *id) {
    if (length > 0 && pattern[length - 1] == '*') return strncmp(pattern, id, length - 1) == 0;
    return strlen(id) == length && strncmp(pattern, id, length) == 0;
}

static bool is_needed(const struct check *check, const char *id) {
    const char *at = check->needs;
    while (*at) {
        const size_t length = strcspn(at, " ");
        if (pattern_matches(at, length, id)) return true;
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

// --- one process ---------------------------------------------------------------------------------

static bool set_actions(posix_spawn_file_actions_t *actions, int fd, bool verbose) {
    bool good = posix_spawn_file_actions_adddup2(actions, fd, CHECK_MESSAGE_FD) == 0;
    good = good && posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0) == 0;
    for (int i = 1; i <= 2 && good && !verbose; ++i)
        good = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_WRONLY, 0) == 0;
    return good;
}

static bool spawn(const struct runner_options *options, const struct check *check, int fd,
                  pid_t *out_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char seed[32];
    char *arguments[] = {(char *)"ggml-plugin-check",
                         (char *)"--run-one",
                         (char *)check->id,
                         seed,
                         (char *)options->path,
                         (char *)options->device,
                         NULL};
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)options->seed);
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return false;
    }
    const bool spawned =
        set_actions(&actions, fd, options->verbose) &&
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP) == 0 &&
        posix_spawn(out_pid, "/proc/self/exe", &actions, &attributes, arguments, environ) == 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return spawned;
}

static bool job_start(struct job *job, const struct runner_options *options,
                      struct check_result *result) {
    int ends[2];
    *job = (struct job){.fd = -1, .started = now()};
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    const bool spawned = spawn(options, result->check, ends[1], &job->pid);
    close(ends[1]);
    if (!spawned) {
        close(ends[0]);
        return false;
    }
    job->result = result;
    job->fd = ends[0];
    return true;
}

// Reads what is there. A closed pipe is no longer polled.
static void job_receive(struct job *job) {
    char *at = (char *)&job->message + job->received;
    const size_t room = sizeof(job->message) - job->received;
    const ssize_t n = read(job->fd, at, room);
    if (n > 0) job->received += (size_t)n;
    if (n > 0 && job->received < sizeof(job->message)) return;
    if (n < 0 && errno == EINTR) return;
    close(job->fd);
    job->fd = -1;
}

static void judge(struct job *job, int status, bool late, double deadline) {
    struct check_result *result = job->result;
    const struct check_message *message = &job->message;
    const bool valid = job->received == sizeof(*message) && message->magic == CHECK_MESSAGE_MAGIC &&
                       message->verdict >= VERDICT_PASSED && message->verdict <= VERDICT_SKIPPED;
    result->verdict = VERDICT_FAILED;
    result->seconds = now() - job->started;
    if (valid) {
        result->verdict = (enum verdict)message->verdict;
        memcpy(result->text, message->text, sizeof(result->text));
        result->text[sizeof(result->text) - 1] = '\0';
    } else if (late) {
        snprintf(result->text, sizeof(result->text), "did not end within %g s", deadline);
    } else if (WIFSIGNALED(status)) {
        snprintf(result->text, sizeof(result->text), "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(result->text, sizeof(result->text), "the process exited with status %d",
                 WEXITSTATUS(status));
    }
}

// Ends the job if its process is gone or late. What the process left running goes with it.
static bool job_finish(struct job *job, double deadline) {
    int status = 0;
    const bool late = now() - job->started > deadline;
    const pid_t gone = waitpid(job->pid, &status, WNOHANG);
    if (gone == 0 && !late) return false;
    kill(-job->pid, SIGKILL);
    if (gone == 0) waitpid(job->pid, &status, 0);
    if (job->fd >= 0) {
        struct pollfd poll_fd = {.fd = job->fd, .events = POLLIN};
        if (poll(&poll_fd, 1, 0) > 0) job_receive(job);
        if (job->fd >= 0) close(job->fd);
    }
    judge(job, status, late && gone == 0, deadline);
    job->result = NULL;
    return true;
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

static void wait_for_jobs(struct job *jobs, int n_jobs) {
    struct pollfd fds[MAX_JOBS];
    struct job *owners[MAX_JOBS];
    nfds_t n = 0;
    bool closed = false;
    for (int i = 0; i < n_jobs; ++i) {
        if (!jobs[i].result) continue;
        if (jobs[i].fd < 0) closed = true;
        if (jobs[i].fd < 0) continue;
        owners[n] = &jobs[i];
        fds[n++] = (struct pollfd){.fd = jobs[i].fd, .events = POLLIN};
    }
    if (poll(fds, n, closed ? 1 : TICK_MS) <= 0) return;
    for (nfds_t i = 0; i < n; ++i) {
        if (fds[i].revents) job_receive(owners[i]);
    }
}

bool runner_run(const struct runner_options *options, struct check_result *results) {
    struct job jobs[MAX_JOBS] = {{0}};
    const int n_jobs = options->jobs < MAX_JOBS ? options->jobs : MAX_JOBS;
    bool *begun = calloc((size_t)check_count, sizeof(*begun));
    int running = 0;
    bool left = true, good = begun != NULL;
    while (good && (running > 0 || left)) {
        for (int i = 0; i < n_jobs && good; ++i) {
            struct check_result *next = jobs[i].result ? NULL : next_ready(results, begun, &left);
            if (!next) continue;
            good = job_start(&jobs[i], options, next);
            if (!good) break;
            begun[next - results] = true;
            ++running;
            left = true;
        }
        if (running > 0) wait_for_jobs(jobs, n_jobs);
        for (int i = 0; i < n_jobs; ++i) {
            if (jobs[i].result && job_finish(&jobs[i], good ? options->deadline : 0)) --running;
        }
    }
    while (running > 0) {
        for (int i = 0; i < n_jobs; ++i) {
            if (jobs[i].result && job_finish(&jobs[i], 0)) --running;
        }
    }
    free(begun);
    return good;
}

bool result_is_bad(const struct check_result *result) {
    if (!result->selected) return false;
    if (result->exclusion) return result->verdict == VERDICT_PASSED;
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
