// SPDX-License-Identifier: MIT
// The watcher as a thread, where probe_watch_linux.c isn't used.
#include "plugin/probe/process/probe_watch.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "base/fault.h"

enum { TICK_MS = 200, STACK_BYTES = 64 << 10, EXIT_ORPHANED = 74 };

// Polls the parent's id, and kills the whole group when it changes.
static void *watch(void *argument) {
    const pid_t parent = (pid_t)(intptr_t)argument;
    while (getppid() == parent)
        poll(NULL, 0, TICK_MS);
    kill(0, SIGKILL);
    _exit(EXIT_ORPHANED);
}

// Starts the watching thread with a small stack, which counts against the memory limit, and with
// all signals blocked: they are the driver's.
bool probe_watch_parent(long parent, int answers) {
    (void)answers; // shared with it
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

void probe_watch_end(void) {
}
