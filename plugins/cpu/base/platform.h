// SPDX-License-Identifier: MIT
// What differs between operating systems.
#ifndef CPU_PLATFORM_H
#define CPU_PLATFORM_H

#include <pthread.h>
#include <stdatomic.h>

#include "ggml.h"

// Starts a thread that takes no signals; returns 0 or an errno. [any-thread]
int cpu_thread_start(pthread_t *out_thread, void *(*run)(void *), void *argument);
// Names the calling thread (15 characters). [any-thread]
void cpu_thread_name(const char *name);
// Sets the calling thread's priority; false where that is not permitted. [any-thread]
bool cpu_thread_priority(enum ggml_sched_priority priority);
// Sleeps until the word is woken, if it is `value`, for a millisecond at most; for a moment where
// systems know no such sleep. [any-thread]
void cpu_thread_sleep(_Atomic uint32_t *word, uint32_t value);
// Sleeps for a moment, so that whoever wants the processor has it. [any-thread]
void cpu_thread_rest(void);
// Wakes all that sleep on it. [any-thread]
void cpu_thread_wake(_Atomic uint32_t *word);
// How many processors a thread may run on; 0 where that is unknown. [any-thread]
int cpu_thread_count_processors(pthread_t thread);
// The processor that the calling thread runs on; -1 where that is unknown. [any-thread]
int cpu_thread_processor(void);
// Moves the calling thread off n processors, if it may run on others, and leaves it to the system
// again. Nothing where systems move no threads. [any-thread]
void cpu_thread_move_off(const int *processors, int n);
// The clock of extension "ggml.profile" in nanoseconds. [any-thread]
uint64_t cpu_clock_ns(void);
// Nanoseconds that the calling thread has run; the clock's where systems do not count them.
// [any-thread]
uint64_t cpu_thread_time_ns(void);
// Model of the CPU, NUL-terminated; false when unknown. [any-thread]
bool cpu_model(char *out_name, size_t size);
// Memory of the machine in bytes, free <= total; 0 and 0 when unknown. [any-thread]
void cpu_memory(size_t *out_free, size_t *out_total);

// Tells the processor that this is a wait: it saves power and leaves the core to the other hardware
// thread.
static inline void cpu_thread_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
