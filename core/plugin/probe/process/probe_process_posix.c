// SPDX-License-Identifier: MIT
// Finds the helper program and starts it, with pipes for question and result.
#ifndef _WIN32
#define _GNU_SOURCE
#ifdef __APPLE__
#define _DARWIN_C_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/dl/dl.h"
#include "base/env.h"
#include "base/fault.h"
#include "base/fork_lock.h"
#include "base/status.h"
#include "ggml-version.h"
#include "plugin/discover/search_path.h"
#include "plugin/probe/process/probe_group.h"
#include "plugin/probe/process/probe_process.h"

#ifdef __APPLE__
#include <crt_externs.h>
#define environ (*_NSGetEnviron()) // libraries have no such variable
#else
extern char **environ;
#endif

#define HELPER_NAME "ggml-probe"
#define PROCESS "a helper process"

// The helper runs with the application's rights, so it is checked as plugins are.
// --- the helper ----------------------------------------------------------------------------------

// Whether the helper program may be run: an absolute path to an executable file that the policy
// accepts. UNSUPPORTED otherwise, with the reason; IO_ERROR if that can't be told.
static enum ggml_host_status check_helper(const char *path, const struct load_policy *policy) {
    struct plugin_file file;
    char why[512];
    if (path[0] != '/') {
        return ggml_fail(GGML_HOST_UNSUPPORTED, "the helper '%s' is not an absolute path",
                         search_path_label(path));
    }
    enum ggml_host_status status = plugin_file_open(path, &file);
    if (status == GGML_HOST_OUT_OF_MEMORY) return status;
    if (status == GGML_HOST_IO_ERROR) {
        snprintf(why, sizeof(why), "%s", ggml_last_error());
        return ggml_fail(status, "the helper program %s", why);
    }
    if (status != GGML_HOST_OK || access(path, X_OK) != 0) {
        plugin_file_close(&file);
        return ggml_fail(GGML_HOST_UNSUPPORTED, "there is no helper program at '%s'",
                         search_path_label(path));
    }
    status = policy_check_file(policy, path, &file);
    plugin_file_close(&file);
    if (status == GGML_HOST_OK || status == GGML_HOST_OUT_OF_MEMORY) return status;
    snprintf(why, sizeof(why), "%s", ggml_last_error());
    return ggml_fail(GGML_HOST_UNSUPPORTED, "the helper can't be trusted: %s", why);
}

// Tries the helper in one directory. True ends the search: it was found, or memory or descriptors
// ran out.
static bool try_helper(const char *dir, const char *below, const struct load_policy *policy,
                       char out_path[PROBE_PATH_MAX], enum ggml_host_status *out_status) {
    const int n = snprintf(out_path, PROBE_PATH_MAX, "%s%s/" HELPER_NAME, dir, below);
    if (n <= 0 || n >= PROBE_PATH_MAX) return false;
    *out_status = check_helper(out_path, policy);
    return *out_status != GGML_HOST_UNSUPPORTED;
}

// Looks where a build, an installation and a distribution put the helper, in this order; only a
// trusted file is taken, as it runs with the application's rights.
enum ggml_host_status probe_helper_find(const char *given, const struct load_policy *policy,
                                        char out_path[PROBE_PATH_MAX]) {
    static const char anchor; // an address within this library
    char dir[PROBE_PATH_MAX];
    enum ggml_host_status status;
    const char *named = given ? given : ggml_env(GGML_ENV_GGML_PROBE_HELPER);
    out_path[0] = '\0';
    if (named) {
        snprintf(out_path, PROBE_PATH_MAX, "%s", named);
        if (strlen(named) < PROBE_PATH_MAX) return check_helper(named, policy);
        return ggml_fail(GGML_HOST_UNSUPPORTED, "the path of the helper is too long");
    }
    if (dl_module_dir(&anchor, dir, sizeof(dir))) {
        if (try_helper(dir, "", policy, out_path, &status)) return status;
        if (try_helper(dir, "/../libexec/ggml-host", policy, out_path, &status)) return status;
        if (try_helper(dir, "/../../libexec/ggml-host", policy, out_path, &status)) return status;
    }
    const bool known = dl_executable_dir(dir, sizeof(dir));
    if (known && try_helper(dir, "", policy, out_path, &status)) return status;
    if (try_helper(GGML_HOST_LIBEXEC_DIR, "", policy, out_path, &status)) return status;
    return ggml_fail(GGML_HOST_UNSUPPORTED,
                     "the helper program " HELPER_NAME " is neither in " GGML_HOST_LIBEXEC_DIR
                     " nor beside the library: install it, or say with GGML_PROBE_HELPER where it "
                     "is");
}

// Unpredictable for the plugin, which must not be able to forge frames.
enum ggml_host_status probe_key_new(uint8_t out_key[PROBE_KEY_SIZE]) {
    if (getentropy(out_key, PROBE_KEY_SIZE) == 0) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_IO_ERROR, "no random numbers: %s", strerror(errno));
}

// --- starting ------------------------------------------------------------------------------------

void probe_ends_close(int ends[2]) {
    for (int i = 0; i < 2; ++i) {
        if (ends[i] >= 0) close(ends[i]);
        ends[i] = -1;
    }
}

// Moves descriptors to numbers above those that the helper expects, so that none is overwritten
// while they are duplicated. Closes `low` in any case.
bool probe_ends_raise(bool good, int low[2], int out_ends[2]) {
    enum { FIRST_NUMBER = 10 };
    out_ends[0] = out_ends[1] = -1;
    for (int i = 0; i < 2 && good; ++i) {
        out_ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, FIRST_NUMBER);
        good = out_ends[i] >= 0;
        if (!good && errno == EINVAL) errno = EMFILE; // no process may have such a number
    }
    const int error = errno;
    probe_ends_close(low);
    if (!good) probe_ends_close(out_ends);
    errno = error;
    return good;
}

// Opens a pipe whose ends are closed on exec.
static bool open_pipe(int out_ends[2]) {
    int low[2] = {-1, -1};
    if (ggml_fault(GGML_FAULT_PIPE)) return false;
#ifdef __APPLE__
    const bool good = pipe(low) == 0;
#else
    const bool good = pipe2(low, O_CLOEXEC) == 0;
#endif
    return probe_ends_raise(good, low, out_ends);
}

// File actions that give the child the listed descriptors; those with -1 lead to /dev/null. Returns
// an errno.
static int set_actions(posix_spawn_file_actions_t *actions, const struct probe_descriptor *given,
                       size_t count) {
    int error = 0;
    for (size_t i = 0; i < count && error == 0; ++i) {
        const int number = given[i].number;
        error = given[i].fd >= 0
                    ? posix_spawn_file_actions_adddup2(actions, given[i].fd, number)
                    : posix_spawn_file_actions_addopen(actions, number, "/dev/null",
                                                       number == 0 ? O_RDONLY : O_WRONLY, 0);
    }
    return error;
}

// A session of its own, so that the helper has no terminal and no way back into the application's
// group, and default signal handling: blocked or ignored signals would be inherited. Returns an
// errno.
static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
#ifdef POSIX_SPAWN_SETSID
    const short own_group = POSIX_SPAWN_SETSID;
#else
    const short own_group = POSIX_SPAWN_SETPGROUP;
#endif
    int error = posix_spawnattr_setflags(
        attributes, (short)(own_group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    if (error == 0) error = posix_spawnattr_setpgroup(attributes, 0);
    if (error == 0) error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &all);
    return error;
}

// Starts the helper by posix_spawn(), which is safe in a process with threads. A privileged
// process (set-user-ID) passes no environment. An errno.
int probe_process_spawn(const char *helper, const char *const *arguments,
                        const struct probe_descriptor *given, size_t count, long *out_pid) {
    static char *const nothing[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid = 0;
    if (ggml_fault(GGML_FAULT_SPAWN)) return errno;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    error = set_actions(&actions, given, count);
    if (error == 0) error = set_attributes(&attributes);
    if (error == 0) {
        error = posix_spawn(&pid, helper, &actions, &attributes, (char *const *)arguments,
                            ggml_env_privileged() ? nothing : environ);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    *out_pid = pid;
    return error;
}

// Sets the error for an errno: UNSUPPORTED where helpers can't be started at all, BUSY where it
// may work later.
enum ggml_host_status probe_process_fail(int error, const char *process, const char *what) {
    enum ggml_host_status status = GGML_HOST_IO_ERROR;
    if (error == ENOENT || error == EACCES || error == EPERM || error == ENOSYS ||
        error == ENOEXEC) {
        status = GGML_HOST_UNSUPPORTED;
    }
    if (error == ENOMEM) status = GGML_HOST_OUT_OF_MEMORY;
    if (error == EAGAIN || error == EMFILE || error == ENFILE) status = GGML_HOST_BUSY;
    return ggml_fail(status, "%s can't be %s: %s", process, what, strerror(error));
}

// Writes the request into the pipe before the helper exists. It is smaller than a pipe's buffer, so
// that this doesn't block.
static bool write_request(int fd, const struct probe_request *request) {
    unsigned char bytes[PROBE_REQUEST_SIZE];
    struct probe_request sent = *request;
    sent.parent = (uint32_t)getpid();
    probe_request_write(&sent, bytes);
    return write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes);
}

// Starts a helper for one plugin. On success the caller owns the process and the descriptor.
enum ggml_host_status probe_process_start(const char *helper, const char *plugin,
                                          const struct probe_request *request,
                                          struct probe_process *out_process) {
    int question[2] = {-1, -1};
    int answer[2] = {-1, -1};
    enum ggml_host_status status = GGML_HOST_OK;
    *out_process = (struct probe_process){.fd = -1};
    if (!open_pipe(question) || !open_pipe(answer) || !write_request(question[1], request) ||
        fcntl(answer[0], F_SETFL, O_NONBLOCK) != 0) {
        status = probe_process_fail(errno, PROCESS, "talked to");
        goto fail;
    }
    const char *const arguments[] = {HELPER_NAME, plugin, NULL};
    const struct probe_descriptor given[] = {
        {question[0], 0}, {-1, 1}, {-1, 2}, {answer[1], PROBE_ANSWER_FD}};
    const int error = probe_process_spawn(helper, arguments, given,
                                          sizeof(given) / sizeof(given[0]), &out_process->pid);
    if (error != 0) {
        status = probe_process_fail(error, PROCESS, "started");
        goto fail;
    }
    out_process->fd = answer[0];
    answer[0] = -1;
fail:
    probe_ends_close(question);
    probe_ends_close(answer);
    return status;
}

// --- listening -----------------------------------------------------------------------------------

// Waits until one of them has sent something or has closed its end, at most timeout_ms.
void probe_process_wait(const struct probe_process *const *processes, size_t count,
                        int timeout_ms) {
    enum { MAX_POLLED = 64 };
    struct pollfd polled[MAX_POLLED];
    nfds_t n = 0;
    for (size_t i = 0; i < count && n < MAX_POLLED; ++i) {
        if (processes[i]->fd < 0) continue;
        polled[n++] = (struct pollfd){.fd = processes[i]->fd, .events = POLLIN};
    }
    poll(polled, n, timeout_ms);
}

// Reads what there is without waiting; closes the descriptor at the end or after a failure.
enum ggml_host_status probe_process_read(struct probe_process *process, void *out_bytes,
                                         size_t size, size_t *out_n) {
    *out_n = 0;
    if (process->fd < 0) return GGML_HOST_OK;
    const ssize_t n = ggml_fault(GGML_FAULT_READ) ? -1 : read(process->fd, out_bytes, size);
    if (n > 0) *out_n = (size_t)n;
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return GGML_HOST_OK;
    const int error = errno;
    close(process->fd);
    process->fd = -1;
    if (n == 0) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_IO_ERROR, "listening to a helper process: %s", strerror(error));
}

// Whether the process has ended; it is not collected (WNOWAIT), so that its number can't become
// another one's.
bool probe_process_gone(const struct probe_process *process) {
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    const int result = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    return result != 0 ? errno == ECHILD : info.si_pid != 0;
}

// --- ending --------------------------------------------------------------------------------------

// Processes that did not end when they were killed, because a driver holds them in the kernel. If
// the table is full, one more stays a zombie until this process ends.
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_LOCK(left_lock);
static pid_t left[32];

// Remembers a process for later collection.
static void leave(pid_t pid) {
    pthread_mutex_lock(&left_lock);
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]) && pid > 0; ++i) {
        if (left[i] != 0) continue;
        left[i] = pid;
        pid = 0;
    }
    pthread_mutex_unlock(&left_lock);
}

// Collects processes that were killed earlier and not waited for.
void probe_process_collect(void) {
    pthread_mutex_lock(&left_lock);
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); ++i) {
        if (left[i] != 0 && waitpid(left[i], NULL, WNOHANG) != 0) left[i] = 0;
    }
    pthread_mutex_unlock(&left_lock);
}

// Whether the number is still that of the helper. Where the application ignores SIGCHLD or collects
// all its children, it may be another process's already.
static bool is_ours(pid_t pid) {
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// Kills the helper, its group and its control group, and waits a moment for it. Until it has been
// collected its number can't be reused, so that the signals can't hit another process.
void probe_process_end(struct probe_process *process, struct probe_exit *out_exit) {
    enum { PATIENCE_MS = 300 };
    const struct timespec moment = {.tv_nsec = 1000000};
    const pid_t pid = (pid_t)process->pid;
    int status = 0;
    pid_t collected = 0;
    struct probe_group group = {.folder = ""};
    *out_exit = (struct probe_exit){0};
    if (is_ours(pid)) {
        probe_group_find(pid, &group);
        probe_group_kill(&group);
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
    }
    for (int i = 0; i < PATIENCE_MS && collected == 0; ++i) {
        collected = waitpid(pid, &status, WNOHANG);
        if (collected == 0) nanosleep(&moment, NULL);
    }
    if (collected == 0) leave(pid);
    for (int i = 0; i < PATIENCE_MS && !probe_group_remove(&group); ++i)
        nanosleep(&moment, NULL);
    if (collected == pid) {
        out_exit->known = true;
        out_exit->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        out_exit->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    }
    if (process->fd >= 0) close(process->fd);
    *process = (struct probe_process){.fd = -1};
}

// Causes that are likely in a driver.
const char *probe_signal_name(int number) {
    switch (number) {
    case SIGSEGV: return "bad address";
    case SIGBUS: return "bad access to memory";
    case SIGABRT: return "abort";
    case SIGILL: return "illegal instruction";
    case SIGFPE: return "arithmetic error";
    case SIGKILL: return "killed, perhaps for want of memory";
    case SIGTERM: return "asked to terminate";
    case SIGXCPU: return "used too much processor time";
    case SIGXFSZ: return "wrote too large a file";
    case SIGSYS: return "forbidden system call";
    default: return "see signal(7)";
    }
}

// --- the machine ---------------------------------------------------------------------------------

// 1 where it is not known, so that limits by it are the minimum.
uint64_t probe_machine_memory(void) {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 1;
}

unsigned probe_machine_cpus(void) {
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (unsigned)count : 1;
}
#endif
