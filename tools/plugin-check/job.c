// SPDX-License-Identifier: MIT
// Starts a process for checks, reads its verdicts from a pipe, and judges how it ended: by itself,
// by a crash or by the deadline.
#define _GNU_SOURCE
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// A process may be gone while something that it left holds the pipe: look at least this often.
enum { TICK_MS = 50 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

// --- start ---------------------------------------------------------------------------------------

// Leads a standard stream to /dev/null.
static void drop_stream(int fd, int flags) {
    const int null = open("/dev/null", flags | O_CLOEXEC);
    if (null >= 0) dup2(null, fd);
    if (null > 2) close(null);
}

// In the child: a process group of its own, so that the parent can end it with all that it
// starts. A parent that is killed can't, so a plugin that hangs goes with it.
static _Noreturn void begin_check(const struct job *job, const struct runner_options *options,
                                  int report_fd) {
    struct check_run run = {.check = job->result->check,
                            .progress = job->progress,
                            .path = options->path,
                            .device = options->device,
                            .seed = options->seed,
                            .all_cases = options->all_cases,
                            .key = job->key,
                            .report_fd = report_fd};
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != job->parent) _exit(1);
#endif
    drop_stream(0, O_RDONLY);
    for (int fd = 1; fd <= 2 && !options->verbose; ++fd)
        drop_stream(fd, O_WRONLY);
    check_execute(&run, 1 + job->n_left);
}

// A file descriptor that becomes readable when the process ends; -1 on kernels before 5.3.
static int open_process(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

// Memory shared with the child, in which it says what it is at; NULL without memory.
static struct check_progress *new_progress(void) {
    void *page = mmap(NULL, sizeof(struct check_progress), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

void job_free(struct job *job) {
    if (job->progress) munmap(job->progress, sizeof(*job->progress));
    job->progress = NULL;
}

// The child closes the descriptors of other jobs, as a pipe ends only with its last writer.
bool job_start(struct job *job, const struct runner_options *options, struct check_result *results,
               int n, const struct job *others, int n_others) {
    int ends[2];
    struct check_progress *progress = job->progress ? job->progress : new_progress();
    if (!progress) return false;
    *job = (struct job){
        .fd = -1, .pid_fd = -1, .started = now(), .progress = progress, .parent = getpid()};
    progress->at[0] = '\0';
    atomic_store(&progress->n_steps, 0);
    if (getentropy(job->key, sizeof(job->key)) != 0) return false;
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    job->result = results;
    job->rest = results + 1;
    job->n_left = n - 1;
    job->pid = fork();
    if (job->pid == 0) {
        close(ends[0]);
        for (int i = 0; i < n_others; ++i) {
            if (!others[i].result || &others[i] == job) continue;
            if (others[i].fd >= 0) close(others[i].fd);
            if (others[i].pid_fd >= 0) close(others[i].pid_fd);
        }
        begin_check(job, options, ends[1]);
    }
    close(ends[1]);
    if (job->pid < 0) {
        close(ends[0]);
        job->result = NULL;
        return false;
    }
    setpgid(job->pid, job->pid);
    job->pid_fd = open_process(job->pid);
    job->fd = ends[0];
    job->alive = job->started;
    return true;
}

// --- messages ------------------------------------------------------------------------------------

// Whether the message is whole and carries this job's key: a plugin may write into any
// descriptor.
static bool is_verdict(const struct job *job) {
    const struct check_message *message = &job->message;
    return job->received == sizeof(*message) && message->magic == CHECK_MESSAGE_MAGIC &&
           memcmp(message->key, job->key, sizeof(job->key)) == 0 &&
           message->verdict >= VERDICT_PASSED && message->verdict <= VERDICT_SKIPPED;
}

// Copies the message into the result of the check it is about.
static void take_verdict(struct job *job) {
    struct check_result *result = job->result;
    result->verdict = (enum verdict)job->message.verdict;
    result->seconds = now() - job->started;
    memcpy(result->text, job->message.text, sizeof(result->text));
    result->text[sizeof(result->text) - 1] = '\0';
}

// The verdict of the last check stays in job->message: it counts when the process has ended.
static bool is_complete(struct job *job) {
    if (job->received < sizeof(job->message)) return false;
    if (job->n_left == 0 || !is_verdict(job) || job->message.verdict == VERDICT_FAILED) return true;
    take_verdict(job);
    ++job->result;
    ++job->rest;
    --job->n_left;
    job->started = job->alive = now();
    job->received = 0;
    return false;
}

// Reads what is there. A closed pipe is no longer polled.
static void receive(struct job *job) {
    while (job->fd >= 0 && !is_complete(job)) {
        char *to = (char *)&job->message + job->received;
        const ssize_t n = read(job->fd, to, sizeof(job->message) - job->received);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) break;
        job->received += (size_t)n;
    }
    close_fd(&job->fd);
}

// Waits for messages and ends of processes, at most TICK_MS; 1 ms where an end can't be polled.
void job_wait(struct job *jobs, int n_jobs) {
    struct pollfd fds[2 * RUNNER_MAX_JOBS];
    nfds_t n = 0;
    bool blind = false;
    for (int i = 0; i < n_jobs; ++i) {
        if (!jobs[i].result) continue;
        blind = blind || (jobs[i].fd < 0 && jobs[i].pid_fd < 0);
        fds[n++] = (struct pollfd){.fd = jobs[i].fd, .events = POLLIN};
        fds[n++] = (struct pollfd){.fd = jobs[i].pid_fd, .events = POLLIN};
    }
    if (poll(fds, n, blind ? 1 : TICK_MS) <= 0) return;
    for (int i = 0; i < n_jobs; ++i) {
        if (jobs[i].result) receive(&jobs[i]);
    }
}

// --- end -----------------------------------------------------------------------------------------

// Whether nothing was heard for the deadline; each step that the check notes begins it again.
static bool is_late(struct job *job, double deadline) {
    const unsigned n_steps = atomic_load(&job->progress->n_steps);
    if (n_steps != job->n_steps) job->alive = now();
    job->n_steps = n_steps;
    return now() - job->alive > deadline;
}

static void set_verdict(struct job *job, int status, bool late, double deadline) {
    struct check_result *result = job->result;
    const char *at = job->progress->at, *of = at[0] ? " at " : "";
    result->verdict = VERDICT_FAILED;
    result->seconds = now() - job->started;
    if (is_verdict(job)) {
        take_verdict(job);
    } else if (late) {
        snprintf(result->text, sizeof(result->text), "did not end within %g s%s%.199s", deadline,
                 of, at);
    } else if (WIFSIGNALED(status)) {
        snprintf(result->text, sizeof(result->text), "ended by signal %d (%s)%.119s%s%.199s",
                 WTERMSIG(status), strsignal(WTERMSIG(status)), job->progress->crash, of, at);
    } else {
        snprintf(result->text, sizeof(result->text), "the process exited with status %d%s%.199s",
                 WEXITSTATUS(status), of, at);
    }
}

bool job_finish(struct job *job, double deadline) {
    int status = 0;
    const bool late = is_late(job, deadline);
    const pid_t gone = waitpid(job->pid, &status, WNOHANG);
    if (gone == 0 && !late) return false;
    kill(-job->pid, SIGKILL);
    if (gone == 0) waitpid(job->pid, &status, 0);
    receive(job);
    close_fd(&job->fd);
    close_fd(&job->pid_fd);
    set_verdict(job, status, late && gone == 0, deadline);
    job->result = NULL;
    return true;
}
