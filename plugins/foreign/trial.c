// SPDX-License-Identifier: MIT
// Starts the helper, reads what it writes into a pipe until a deadline, and ends its process group
// with whatever it started.
#define _GNU_SOURCE
#include "trial.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "files.h"
#include "plugin/probe/process/probe_group.h"

extern char **environ;

enum { LINE_SIZE = FOREIGN_MESSAGE_SIZE + 16 }; // a message with its first word

// The helper's answer is lines: "at STEP" before each step, at last "score N" or "refused MESSAGE".
// There are three steps for each device: only what is told in the end is kept.
struct trial {
    pid_t process;
    int answers;             // read end of the pipe, or -1
    size_t used;             // of `line`
    char line[LINE_SIZE];    // the one that has not ended yet
    char step[LINE_SIZE];    // the last
    char verdict[LINE_SIZE]; // the line that is not a step, or ""
};

// The helper runs as this process does: nobody else may have been able to change it.
static bool find_helper(char *out_path, size_t size, char *out_message) {
    static const char anchor;
    Dl_info info;
    const char *slash = NULL;
    if (dladdr(&anchor, &info) != 0) slash = strrchr(info.dli_fname, '/');
    if (slash && info.dli_fname[0] == '/') {
        snprintf(out_path, size, "%.*s/" FOREIGN_TRIAL_HELPER, (int)(slash - info.dli_fname),
                 info.dli_fname);
        if (access(out_path, X_OK) == 0) return foreign_is_trusted(out_path, out_message);
    }
    snprintf(out_path, size, "%s/" FOREIGN_TRIAL_HELPER, FOREIGN_PLUGIN_DIR);
    if (access(out_path, X_OK) == 0) return foreign_is_trusted(out_path, out_message);
    foreign_say(out_message,
                FOREIGN_TRIAL_HELPER " is not beside the plugin: nothing is opened untried");
    return false;
}

// A privileged process hands its user's environment to nobody: LD_PRELOAD is in it.
static char **environment(void) {
    static char *nothing[] = {NULL};
    return ggml_env_privileged() ? nothing : environ;
}

// The writing end's number is none of those that the helper's own files get: in a process that has
// closed them it would be taken from the helper.
static bool open_pipe(int out_ends[2]) {
    if (pipe2(out_ends, O_CLOEXEC) != 0) return false;
    const int low = out_ends[1];
    out_ends[1] = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    close(low);
    if (out_ends[1] >= 0) return true;
    close(out_ends[0]);
    errno = error;
    return false;
}

// In a session of its own, so that what the binary starts goes with it, and it has no terminal.
static bool spawn(struct trial *trial, const char *helper, const char *path, const char *server,
                  char *out_message) {
    int ends[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char parent[24];
    char *const arguments[] = {(char *)(uintptr_t)helper, parent, (char *)(uintptr_t)path,
                               (char *)(uintptr_t)server, NULL};
    snprintf(parent, sizeof(parent), "%ld", (long)getpid());
    if (!open_pipe(ends)) {
        foreign_say(out_message, "no pipe to a helper: %s", strerror(errno));
        return false;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    const int error =
        posix_spawn(&trial->process, helper, &actions, &attributes, arguments, environment());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    trial->answers = ends[0];
    if (error == 0) return true;
    close(ends[0]);
    foreign_say(out_message, "%s can't be started: %s", helper, strerror(error));
    return false;
}

// By the monotonic clock: a deadline must not move when the time is set.
static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void take_line(struct trial *trial) {
    const char *line = trial->line;
    if (strncmp(line, "at ", 3) == 0) {
        snprintf(trial->step, sizeof(trial->step), "%s", line + 3);
    } else if (strncmp(line, "score ", 6) == 0 || strncmp(line, "refused ", 8) == 0) {
        if (!trial->verdict[0]) memcpy(trial->verdict, line, sizeof(trial->verdict));
    }
}

// A line that is too long is cut off.
static void take_bytes(struct trial *trial, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        if (bytes[i] != '\n') {
            if (trial->used + 1 < sizeof(trial->line)) trial->line[trial->used++] = bytes[i];
            continue;
        }
        trial->line[trial->used] = '\0';
        trial->used = 0;
        take_line(trial);
    }
}

// Until the helper closes its end; false when time is up.
static bool listen_to(struct trial *trial, long deadline) {
    char bytes[4096];
    for (;;) {
        struct pollfd wait = {trial->answers, POLLIN, 0};
        const long left = deadline - milliseconds();
        if (left <= 0) return false;
        if (poll(&wait, 1, (int)left) < 0 && errno != EINTR) return true;
        if (!(wait.revents & (POLLIN | POLLHUP))) continue;
        const ssize_t n = read(trial->answers, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return true;
        take_bytes(trial, bytes, (size_t)n);
    }
}

// The score, or 0 with the message of the helper or what became of it.
static int conclude(const struct trial *trial, const char *path, bool in_time, int status,
                    char *out_message) {
    const char *step = trial->step[0] ? trial->step : "starting";
    if (strncmp(trial->verdict, "score ", 6) == 0) return atoi(trial->verdict + 6);
    if (trial->verdict[0]) {
        foreign_say(out_message, "%s", trial->verdict + strlen("refused "));
    } else if (!in_time) {
        foreign_say(out_message, "%s did not finish within %d seconds in a helper process (%s)",
                    path, FOREIGN_TRIAL_SECONDS, step);
    } else if (WIFSIGNALED(status)) {
        foreign_say(out_message, "%s ended a helper process by signal %d (%s) while it was %s",
                    path, WTERMSIG(status), strsignal(WTERMSIG(status)), step);
    } else {
        foreign_say(out_message, "%s ended a helper process with status %d while it was %s", path,
                    WEXITSTATUS(status), step);
    }
    return 0;
}

// Waits until it has ended; false if that had to be helped. One that closed its end may still run.
// Its number is its own until it is collected, unless the application ignores SIGCHLD.
static bool end(const struct trial *trial, long deadline, struct probe_group *out_group) {
    const struct timespec moment = {.tv_nsec = 1000000};
    bool by_itself = true;
    for (;; nanosleep(&moment, NULL)) {
        siginfo_t info = {.si_pid = 0};
        const int how = WEXITED | WNOWAIT | (by_itself ? WNOHANG : 0);
        if (waitid(P_PID, (id_t)trial->process, &info, how) != 0) {
            if (errno == EINTR) continue;
            return by_itself;
        }
        if (info.si_pid != 0) break;
        if (milliseconds() < deadline) continue;
        kill(trial->process, SIGKILL);
        by_itself = false;
    }
    probe_group_find(trial->process, out_group);
    probe_group_kill(out_group);
    kill(-trial->process, SIGKILL); // what it started
    return by_itself;
}

// Blocks for at most FOREIGN_TRIAL_SECONDS, and shortly beyond while processes are killed. Control
// groups can only be removed once the kernel has buried all of their processes, which takes a
// moment.
int foreign_trial(const char *path, const char *server, char out_message[FOREIGN_MESSAGE_SIZE]) {
    enum { PATIENCE_MS = 300 };
    const struct timespec moment = {.tv_nsec = 1000000};
    struct trial trial = {.answers = -1};
    struct probe_group group = {.folder = ""};
    char helper[PATH_MAX];
    int status = 0;
    if (!find_helper(helper, sizeof(helper), out_message)) return 0;
    if (!spawn(&trial, helper, path, server, out_message)) return 0;
    const long deadline = milliseconds() + FOREIGN_TRIAL_SECONDS * 1000L;
    bool in_time = listen_to(&trial, deadline);
    close(trial.answers);
    in_time = end(&trial, deadline, &group) && in_time;
    while (waitpid(trial.process, &status, 0) < 0 && errno == EINTR) {
    }
    for (int i = 0; i < PATIENCE_MS && !probe_group_remove(&group); ++i)
        nanosleep(&moment, NULL);
    return conclude(&trial, path, in_time, status, out_message);
}
