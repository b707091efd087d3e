// SPDX-License-Identifier: MIT
// Makes the n-th call fail that can: an allocation, or a call of the operating system.
#ifndef TESTS_SUPPORT_FAULT_SWEEP_H
#define TESTS_SUPPORT_FAULT_SWEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// Reads that follow each other with nothing between that may fail: the pieces of a large file, each
// of which would be a call to fail by itself.
enum { FAULT_READS = 4 }; // for tests whose every round is a process, or two
struct fault_run {
    long most; // that count
    atomic_long n;
};
// Whether a call counts, which continues the run or ends it.
bool fault_run_counts(struct fault_run *run, bool continues);
// So many reads of each run count from now on; all do at first.
void fault_limit_reads(long most);

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
