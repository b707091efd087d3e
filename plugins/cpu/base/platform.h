// SPDX-License-Identifier: MIT
// What differs between operating systems.
#ifndef CPU_PLATFORM_H
#define CPU_PLATFORM_H

#include <pthread.h>

#include "ggml.h"

// Starts a thread that takes no signals; returns 0 or an errno. [any-thread]
int cpu_thread_start(pthread_t *out_thread, void *(*run)(void *), void *argument);
// Names the calling thread (15 characters). [any-thread]
void cpu_thread_name(const char *name);
// Sets the calling thread's priority; false where that is not permitted. [any-thread]
bool cpu_thread_priority(enum ggml_sched_priority priority);
// Lets others run for a moment, also those of lower priority. [any-thread]
void cpu_thread_rest(void);
// The clock of extension "ggml.profile" in nanoseconds. [any-thread]
uint64_t cpu_clock_ns(void);
// Model of the CPU, NUL-terminated; false when unknown. [any-thread]
bool cpu_model(char *out_name, size_t size);
// Memory of the machine in bytes, free <= total; 0 and 0 when unknown. [any-thread]
void cpu_memory(size_t *out_free, size_t *out_total);

#endif
