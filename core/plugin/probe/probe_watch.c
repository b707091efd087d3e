// SPDX-License-Identifier: MIT
// Ends this process with the application. A closed pipe would not tell: a child of the application
// may have a copy of its end. PR_SET_PDEATHSIG alone would not either: it fires when the parent's
// thread ends, and not for processes started by this one.
#define _GNU_SOURCE
#include "plugin/probe/probe_watch.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "base/fault.h"
#include "plugin/probe/probe_group.h"

enum { TICK_MS = 200, STACK_BYTES = 64 << 10, EXIT_ORPHANED = 74 };

// Waits by pidfd where the kernel has it, else by polling the parent's id, and then kills the whole
// group.
static void *watch(void *argument) {
    const pid_t parent = (pid_t)(intptr_t)argument;
    int fd = -1;
#ifdef SYS_pidfd_open
    fd = (int)syscall(SYS_pidfd_open, parent, 0);
#endif
    while (getppid() == parent) {
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        poll(&watched, 1, fd >= 0 ? -1 : TICK_MS);
        // The driver may have closed it, and its number may be another file's.
        if (watched.revents != 0) fd = -1;
    }
    probe_group_end_own();
    kill(0, SIGKILL);
    _exit(EXIT_ORPHANED);
}

// Starts the watching thread with a small stack, which counts against the memory limit, and with
// all signals blocked: they are the driver's.
bool probe_watch_parent(long parent) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const size_t stack = STACK_BYTES > PTHREAD_STACK_MIN ? STACK_BYTES : PTHREAD_STACK_MIN;
    const bool started = !ggml_fault(GGML_FAULT_SPAWN) &&
                         pthread_attr_setstacksize(&attributes, stack) == 0 &&
                         pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                         pthread_create(&thread, &attributes, watch, (void *)(intptr_t)parent) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}
