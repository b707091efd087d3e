// SPDX-License-Identifier: MIT
// Locks that are held for moments only. fork() copies only the calling thread: a lock that another
// thread holds at that moment would stay locked in the child for ever.
#ifndef GGML_BASE_FORK_LOCK_H
#define GGML_BASE_FORK_LOCK_H

#ifdef __linux__
#include <pthread.h>

// fork() acquires the lock before and releases it in the parent and in the child. A thread that
// holds it acquires none of the others and doesn't call fork(). [init]
void fork_lock_add(pthread_mutex_t *lock);

#define FORK_LOCK(lock)                                                                            \
    __attribute__((constructor)) static void add_fork_lock(void) {                                 \
        fork_lock_add(&(lock));                                                                    \
    }                                                                                              \
    struct fork_lock // a declaration, for its semicolon
#else
#define FORK_LOCK(lock) struct fork_lock
#endif

#endif
