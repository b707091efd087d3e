// SPDX-License-Identifier: MIT
// Locks that are held for moments only and must not be held by nobody for ever in a child: fork()
// copies one thread, and what the others held stays locked.
#ifndef GGML_BASE_FORK_LOCK_H
#define GGML_BASE_FORK_LOCK_H

#ifdef __linux__
#include <pthread.h>

// fork() waits for the lock and lets go of it on both sides. Whoever holds it takes none of the
// others, and forks not. [init]
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
