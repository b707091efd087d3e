// SPDX-License-Identifier: MIT
// Makes the n-th call fail that can: an allocation, or a call of the operating system.
#ifndef TESTS_SUPPORT_FAULT_SWEEP_H
#define TESTS_SUPPORT_FAULT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

// From now on the call with this number (0: the first, of any thread) fails, once.
void fault_arm(long n);
// Back to normal; returns whether that call was reached.
bool fault_disarm(void);
// For calls that the core does not ask about, which a test wraps: true when this one must fail.
bool fault_next(void);
// How many failed since the program began, by kind.
size_t fault_count_memory(void);
size_t fault_count_system(void);

// What a round must leave as it was. Memory is 0 where it can't be told: without glibc, or under a
// sanitizer, which looks for leaks itself.
struct resources {
    size_t n_files;
    size_t n_bytes;
};
struct resources resources_in_use(void);

#endif
