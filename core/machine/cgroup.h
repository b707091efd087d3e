// SPDX-License-Identifier: MIT
// CPU time and memory that control groups (versions 1 and 2) grant this process.
#ifndef GGML_MACHINE_CGROUP_H
#define GGML_MACHINE_CGROUP_H

#include <stdint.h>

// Input of the kernel, or a recording of it for tests.
struct cgroup_view {
    const char *root;        // before every path: "" here, a directory when replayed
    const char *self_cgroup; // text of /proc/self/cgroup; NULL: none
    const char *mountinfo;   // text of /proc/self/mountinfo; NULL: the usual mount points
};

// CPUs' worth of time of the process's group and all its ancestors, the tightest of them; 0: no
// limit. Missing or unreadable files don't limit. [any-thread]
double cgroup_cpu_limit(const struct cgroup_view *view);

// Bytes that the process's group and all its ancestors may still take, the least of them, with the
// files that they would drop from caches; UINT64_MAX: no limit. Swap is not counted. Missing or
// unreadable files don't limit. [any-thread]
uint64_t cgroup_memory_left(const struct cgroup_view *view);

// The same of this process. [any-thread]
double cgroup_cpu_limit_here(void);
uint64_t cgroup_memory_left_here(void);

#endif
