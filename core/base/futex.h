// SPDX-License-Identifier: MIT
// Sleeping on a word of memory that processes may share (Linux), as its headers need not be there.
// Callers define _GNU_SOURCE.
#ifndef GGML_BASE_FUTEX_H
#define GGML_BASE_FUTEX_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FUTEX_OPERATION_WAIT = 0, FUTEX_OPERATION_WAKE = 1 };

// Sleeps while the word has this value: until it is woken, a signal comes, or so many milliseconds
// have passed. Whether it has the value is compared by the kernel, so that a value that is stored
// before the word is woken is never missed. May return at any time. [any-thread]
static inline void futex_wait(atomic_uint *word, unsigned value, int longest_ms) {
    const long longest[2] = {longest_ms / 1000, longest_ms % 1000 * 1000000L}; // as the kernel's
    syscall(SYS_futex, word, FUTEX_OPERATION_WAIT, value, longest, NULL, 0);
}

// Wakes all who sleep on the word. [any-thread]
static inline void futex_wake(atomic_uint *word) {
    syscall(SYS_futex, word, FUTEX_OPERATION_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
