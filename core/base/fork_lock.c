// SPDX-License-Identifier: MIT
// The locks are taken before fork(), in the order in which they were added, and given back in
// the parent and in the child. Only on Linux: elsewhere nothing is done.
#define _GNU_SOURCE
#include "base/fork_lock.h"

#ifdef __linux__
enum { MAX_LOCKS = 16 };

static pthread_mutex_t *locks[MAX_LOCKS];
static int n_locks;

static void take_all(void) {
    for (int i = 0; i < n_locks; ++i)
        pthread_mutex_lock(locks[i]);
}

// In reverse order, as locks are released.
static void release_all(void) {
    for (int i = n_locks - 1; i >= 0; --i)
        pthread_mutex_unlock(locks[i]);
}

void fork_lock_add(pthread_mutex_t *lock) {
    if (n_locks == 0) pthread_atfork(take_all, release_all, release_all);
    if (n_locks < MAX_LOCKS) locks[n_locks++] = lock;
}
#else
typedef int fork_lock_is_for_linux; // a file has to declare something
#endif
