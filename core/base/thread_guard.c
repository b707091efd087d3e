// SPDX-License-Identifier: MIT
// A list of the calls in progress, under one lock. A call fails with BUSY if another thread is
// inside a call on the same object. O(calls in progress); only in builds that check threads.
#include "base/thread_guard.h"

#include "base/fork_lock.h"
#include "base/status.h"

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_LOCK(calls_lock);
static struct thread_guard *calls; // in progress, of all threads

bool thread_guard_enter(struct thread_guard *out_guard, const void *object, const char *function) {
    const char *other = NULL;
    *out_guard = (struct thread_guard){.function = function, .thread = pthread_self()};
    if (!object) return true;
    pthread_mutex_lock(&calls_lock);
    for (const struct thread_guard *call = calls; call && !other; call = call->next) {
        const bool mine = pthread_equal(call->thread, out_guard->thread);
        if (call->object == object && !mine) other = call->function;
    }
    if (!other) {
        out_guard->object = object;
        out_guard->next = calls;
        calls = out_guard;
    }
    pthread_mutex_unlock(&calls_lock);
    if (!other) return true;
    ggml_fail(
        GGML_HOST_BUSY,
        "%s: called from the wrong thread: another one is inside %s with the same object, which "
        "takes one thread at a time",
        function, other);
    return false;
}

void thread_guard_leave(struct thread_guard *guard) {
    if (!guard->object) return;
    pthread_mutex_lock(&calls_lock);
    struct thread_guard **link = &calls;
    while (*link && *link != guard)
        link = &(*link)->next;
    if (*link) *link = guard->next;
    pthread_mutex_unlock(&calls_lock);
}

bool thread_guard_check(const void *object, const char *function) {
    struct thread_guard guard;
    const bool entered = thread_guard_enter(&guard, object, function);
    thread_guard_leave(&guard);
    return entered;
}
