// SPDX-License-Identifier: MIT
// Counts calls that may fail down to the armed one by the library's hooks for faults, and
// measures the resources in use.
#define _GNU_SOURCE
#include "support/fault_sweep.h"

#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/sanitizer.h"
#include "support/plugin_dir.h"

static atomic_long n_left = -1;
static atomic_size_t n_memory;
static atomic_size_t n_system;

static struct fault_run reads = {.most = LONG_MAX}; // by whichever threads

bool fault_run_counts(struct fault_run *run, bool continues) {
    if (continues) return atomic_fetch_add(&run->n, 1) < run->most;
    atomic_store(&run->n, 0);
    return true;
}

void fault_limit_reads(long most) {
    reads.most = most;
}

static bool take(void) {
    return atomic_fetch_sub(&n_left, 1) == 0;
}

static bool may_allocate(void *context) {
    (void)context;
    fault_run_counts(&reads, false);
    if (!take()) return true;
    atomic_fetch_add(&n_memory, 1);
    return false;
}

static bool may_call(enum ggml_fault_point point, void *context) {
    (void)context;
    return !fault_run_counts(&reads, point == GGML_FAULT_READ) || !fault_next();
}

bool fault_next(void) {
    if (!take()) return false;
    atomic_fetch_add(&n_system, 1);
    return true;
}

void fault_arm(long n) {
    atomic_store(&n_left, n);
    ggml_mem_set_fault_hook(may_allocate, NULL);
    ggml_fault_set_hook(may_call, NULL);
}

bool fault_disarm(void) {
    ggml_mem_set_fault_hook(NULL, NULL);
    ggml_fault_set_hook(NULL, NULL);
    return atomic_exchange(&n_left, -1) < 0;
}

size_t fault_count_memory(void) {
    return atomic_load(&n_memory);
}

size_t fault_count_system(void) {
    return atomic_load(&n_system);
}

struct resources resources_in_use(void) {
    struct resources in_use = {.n_files = count_open_files()};
#if defined(__GLIBC__) && !GGML_SANITIZED
    in_use.n_bytes = mallinfo2().uordblks;
#endif
    return in_use;
}
