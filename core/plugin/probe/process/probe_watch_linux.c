// SPDX-License-Identifier: MIT
// The watcher as a process: a thread would stop with the plugin's process, and end when that starts
// another program. PR_SET_PDEATHSIG alone ends one process, and when the application's thread ends.
// It shares the helper's memory, because copying that would be a fifth of the time of a probe.
#define _GNU_SOURCE
#include "plugin/probe/process/probe_watch.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/sanitizer.h"
#include "plugin/probe/process/probe_group.h"

enum { TICK_MS = 200, EXIT_ORPHANED = 74, STACK_SIZE = 16 << 10 };
enum { SIGNAL_GROUP = 4 }; // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9

// Processes by descriptors, so that none is taken for a later one of the same number; -1 where the
// kernel has none (before Linux 5.3).
struct watched {
    pid_t application, helper;
    int application_fd, helper_fd;
    int answers;
};

static pid_t watcher;          // 0: none
static struct watched watched; // in memory that both share

static int open_process(pid_t process) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, process, 0);
#else
    (void)process;
    return -1;
#endif
}

static bool send_signal(int process_fd, int number, unsigned flags) {
#ifdef SYS_pidfd_send_signal
    return process_fd >= 0 && syscall(SYS_pidfd_send_signal, process_fd, number, NULL, flags) == 0;
#else
    (void)process_fd, (void)number, (void)flags;
    return false;
#endif
}

// By number only while that is the helper's: until it has been collected.
static void end_group(void) {
    if (send_signal(watched.helper_fd, SIGKILL, SIGNAL_GROUP)) return;
    if (send_signal(watched.helper_fd, 0, 0) || getppid() == watched.helper)
        kill(-watched.helper, SIGKILL);
}

static bool is_there(pid_t process) {
    return kill(process, 0) == 0 || errno != ESRCH;
}

// poll() would look at whether the helper has threads, in memory that is the helper's.
static void wait_for(struct pollfd *polled, nfds_t count, bool for_ever) {
#ifdef __LP64__
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
    syscall(SYS_ppoll, polled, count, for_ever ? NULL : &tick, NULL, 0L);
#else
    poll(polled, count, for_ever ? -1 : TICK_MS);
#endif
}

// Waits until one of both has ended; the helper is this process's parent.
static void wait_for_end(void) {
    struct pollfd polled[] = {{.fd = watched.application_fd, .events = POLLIN},
                              {.fd = watched.helper_fd, .events = POLLIN}};
    const bool both = polled[0].fd >= 0 && polled[1].fd >= 0;
    while (getppid() == watched.helper && (both || is_there(watched.application))) {
        wait_for(polled, 2, both);
        if (polled[0].revents != 0 || polled[1].revents != 0) return;
    }
}

// Also when the helper alone has ended: the application may be stopped, and be killed before it
// looks at what is left. All signals are blocked; nothing of the plugin's runs here. While the
// helper lives no call fails, so that errno, which both share, stays as it is.
static int watch(void *argument) {
    (void)argument;
    syscall(SYS_close, watched.answers);
    prctl(PR_SET_NAME, "ggml-watch");
    wait_for_end();
    end_group();
    probe_group_end_own();
    _exit(EXIT_ORPHANED);
}

// Without a signal for the end, so that the plugin's wait() does not see this child. Emulators
// (qemu) have fork() alone, and sanitizers know one thread per stack.
static pid_t start_watcher(void) {
    pid_t pid = -1;
#if !GGML_SANITIZED
    static _Alignas(16) char stack[STACK_SIZE];
    pid = clone(watch, stack + STACK_SIZE, CLONE_VM, NULL);
#else
    pid = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L); // whatever order the arguments have
#endif
    if (pid < 0 && errno == EINVAL) pid = fork();
    if (pid == 0) watch(NULL);
    return pid;
}

bool probe_watch_parent(long parent, int answers) {
    sigset_t all, before;
    if (ggml_fault(GGML_FAULT_SPAWN)) return false;
    watched = (struct watched){.application = (pid_t)parent,
                               .helper = getpid(),
                               .application_fd = open_process((pid_t)parent),
                               .helper_fd = open_process(getpid()),
                               .answers = answers};
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    // Before the number could be another's: it was the parent's when the descriptor was opened.
    watcher = getppid() == watched.application ? start_watcher() : -1;
    // A group of its own, which what the plugin sends to its group does not reach.
    if (watcher > 0) setpgid(watcher, watcher);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (watched.application_fd >= 0) close(watched.application_fd);
    if (watched.helper_fd >= 0) close(watched.helper_fd);
    if (watcher > 0) prctl(PR_SET_PDEATHSIG, 0);
    return watcher > 0;
}

// Collected here, it is nobody's child later: not even of an application that takes in orphans.
void probe_watch_end(void) {
    if (watcher <= 0) return;
    kill(watcher, SIGKILL);
    waitpid(watcher, NULL, __WALL);
    watcher = 0;
}
