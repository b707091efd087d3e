// SPDX-License-Identifier: MIT
// Clocks, priorities and names of threads, model and memory of the machine: for Windows and for
// POSIX systems.
#define _GNU_SOURCE
#include "base/platform.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#endif

// Nanoseconds of a clock that never goes back, for profiles.
uint64_t cpu_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); // of the performance counter on Windows
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Windows counts in ticks, which are longer than turns.
uint64_t cpu_thread_time_ns(void) {
#ifdef _WIN32
    return cpu_clock_ns();
#else
    struct timespec ran;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran) != 0) return cpu_clock_ns();
    return (uint64_t)ran.tv_sec * 1000000000u + (uint64_t)ran.tv_nsec;
#endif
}

void cpu_thread_rest(void) {
#ifdef _WIN32
    SwitchToThread();
#else
    const struct timespec moment = {0, 50000};
    nanosleep(&moment, NULL);
#endif
}

#if defined(_WIN32)
// All signals are blocked in the new thread, so that the application's threads get them.
int cpu_thread_start(pthread_t *out_thread, void *(*run)(void *), void *argument) {
    return pthread_create(out_thread, NULL, run, argument);
}

// False where the system refuses it, as real-time priorities without the right to them.
bool cpu_thread_priority(enum ggml_sched_priority priority) {
    static const int levels[] = {THREAD_PRIORITY_BELOW_NORMAL, THREAD_PRIORITY_NORMAL,
                                 THREAD_PRIORITY_ABOVE_NORMAL, THREAD_PRIORITY_HIGHEST,
                                 THREAD_PRIORITY_TIME_CRITICAL};
    return SetThreadPriority(GetCurrentThread(), levels[priority + 1]);
}
#else
int cpu_thread_start(pthread_t *out_thread, void *(*run)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(out_thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

// Low priority is the batch class, where the system has it; the others are levels of the FIFO
// class, which needs a privilege. false if the system refuses: the thread then runs at normal
// priority.
bool cpu_thread_priority(enum ggml_sched_priority priority) {
    // By priority, from GGML_SCHED_PRIO_LOW (-1) on; the classes for 0 have no levels.
    static const int levels[] = {0, 0, 40, 80, 90};
    struct sched_param param = {.sched_priority = levels[priority + 1]};
    if (priority == GGML_SCHED_PRIO_NORMAL) return true;
#ifdef SCHED_BATCH
    if (priority == GGML_SCHED_PRIO_LOW) {
        return pthread_setschedparam(pthread_self(), SCHED_BATCH, &param) == 0;
    }
#endif
    return priority == GGML_SCHED_PRIO_LOW ||
           pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == 0;
}
#endif

#if defined(__linux__)
// Of this process: no other one has the address. A millisecond at most.
void cpu_thread_sleep(_Atomic uint32_t *word, uint32_t value) {
    const struct timespec most = {0, 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &most, NULL, 0);
}

void cpu_thread_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int cpu_thread_count_processors(pthread_t thread) {
    cpu_set_t set;
    return pthread_getaffinity_np(thread, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

int cpu_thread_processor(void) {
    return sched_getcpu();
}

// A failure leaves the thread where it is.
void cpu_thread_move_off(const int *processors, int n) {
    cpu_set_t all, others;
    if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
    others = all;
    for (int i = 0; i < n; ++i) {
        if (processors[i] < CPU_SETSIZE) CPU_CLR(processors[i], &others);
    }
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
    sched_setaffinity(0, sizeof(all), &all);
}
#else
// Windows: a sleep takes until the next tick of a clock that ticks a hundred times a second.
void cpu_thread_sleep(_Atomic uint32_t *word, uint32_t value) {
    (void)word, (void)value;
    cpu_thread_rest();
}

// Nobody sleeps for long.
void cpu_thread_wake(_Atomic uint32_t *word) {
    (void)word;
}

int cpu_thread_count_processors(pthread_t thread) {
    (void)thread;
    return 0;
}

int cpu_thread_processor(void) {
    return -1;
}

void cpu_thread_move_off(const int *processors, int n) {
    (void)processors, (void)n;
}
#endif

// The name appears in debuggers and profilers only: failure is ignored. Linux refuses names of more
// than 15 characters.
void cpu_thread_name(const char *name) {
#if defined(__APPLE__)
    pthread_setname_np(name);
#else
    pthread_setname_np(pthread_self(), name);
#endif
}

#if defined(__linux__)
// Reads the beginning of a file as text.
static bool read_text(const char *path, char *out_text, size_t size) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    setvbuf(file, NULL, _IONBF, 0);
    const size_t n = fread(out_text, 1, size - 1, file);
    out_text[n] = '\0';
    fclose(file);
    return n > 0;
}

// Name of the first processor in /proc/cpuinfo; false on architectures that list none there.
bool cpu_model(char *out_name, size_t size) {
    char text[2048];
    if (!read_text("/proc/cpuinfo", text, sizeof(text))) return false;
    const char *line = strstr(text, "model name");
    const char *value = line ? strchr(line, ':') : NULL;
    if (!value) return false;
    value += 1 + strspn(value + 1, " \t");
    snprintf(out_name, size, "%.*s", (int)strcspn(value, "\n"), value);
    return out_name[0] != '\0';
}

// A line of /proc/meminfo in bytes; 0 if there is none.
static size_t meminfo_bytes(const char *text, const char *key) {
    unsigned long long kib = 0;
    const char *line = strstr(text, key);
    return line && sscanf(line + strlen(key), " %llu", &kib) == 1 ? (size_t)kib * 1024 : 0;
}

// For programs without /proc, as in a chroot. What files could give back doesn't count as free.
static void ask_kernel(size_t *out_free, size_t *out_total) {
    struct sysinfo info;
    if (sysinfo(&info) != 0) return;
    *out_total = (size_t)info.totalram * info.mem_unit;
    *out_free = ((size_t)info.freeram + info.bufferram) * info.mem_unit;
}

// Both are 0 where the system doesn't tell.
void cpu_memory(size_t *out_free, size_t *out_total) {
    char text[4096];
    *out_free = *out_total = 0;
    if (read_text("/proc/meminfo", text, sizeof(text))) {
        *out_total = meminfo_bytes(text, "MemTotal:");
        *out_free = meminfo_bytes(text, "MemAvailable:");
    }
    if (*out_total == 0) ask_kernel(out_free, out_total);
    if (*out_free > *out_total) *out_free = *out_total;
}
#elif defined(_WIN32)
bool cpu_model(char *out_name, size_t size) {
    DWORD length = (DWORD)size;
    return RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                        "ProcessorNameString", RRF_RT_REG_SZ, NULL, out_name, &length) == 0;
}

// Windows reports free memory including the cache's.
void cpu_memory(size_t *out_free, size_t *out_total) {
    MEMORYSTATUSEX status = {.dwLength = sizeof(status)};
    *out_free = *out_total = 0;
    if (!GlobalMemoryStatusEx(&status)) return;
    *out_total = (size_t)status.ullTotalPhys;
    *out_free = (size_t)status.ullAvailPhys;
}
#else
bool cpu_model(char *out_name, size_t size) {
#if defined(__APPLE__)
    return sysctlbyname("machdep.cpu.brand_string", out_name, &size, NULL, 0) == 0;
#else
    (void)out_name;
    (void)size;
    return false;
#endif
}

// No portable system call tells free memory: all of it counts as free, which the host reports as an
// estimate.
void cpu_memory(size_t *out_free, size_t *out_total) {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long bytes = sysconf(_SC_PAGESIZE);
    *out_total = pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
    *out_free = *out_total;
}
#endif
