// SPDX-License-Identifier: MIT
// Reads descriptors, threads, limits, signals, timers, environment and what else a process has,
// mostly from /proc; what differs from run to run without a plugin is left out.
#define _GNU_SOURCE
#include "state.h"

#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

// --- /proc ---------------------------------------------------------------------------------------

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

// Whether a descriptor is still there: that of the listing itself is not.
static bool still_there(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0;
}

// Standard streams are a state of their own.
static bool link_is_standard(const char *directory, const char *name) {
    return strcmp(directory, "/proc/self/fd") == 0 && strlen(name) == 1 && name[0] <= '2';
}

// One line per entry: its name and, for links, where it leads.
static void list_directory(FILE *out, const char *directory) {
    struct dirent **entries = NULL;
    const int n = scandir(directory, &entries, no_dots, by_name);
    for (int i = 0; i < n; ++i) {
        char path[512], target[512] = "";
        snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
        const ssize_t length = readlink(path, target, sizeof(target) - 1);
        if (length >= 0) target[length] = '\0';
        const bool standard = link_is_standard(directory, entries[i]->d_name);
        if (still_there(path) && !standard) fprintf(out, "%s %s\n", entries[i]->d_name, target);
        free(entries[i]);
    }
    free(entries);
}

// Lines of a file that contain the text, or all if it is NULL.
static void print_lines_with(FILE *out, const char *file, const char *text) {
    FILE *in = fopen(file, "re");
    char *line = NULL;
    size_t size = 0;
    while (in && getline(&line, &size, in) > 0) {
        if (!text || strstr(line, text)) fputs(line, out);
    }
    free(line);
    if (in) fclose(in);
}

// --- system calls --------------------------------------------------------------------------------

// Handlers and flags, without the flag that the C library adds.
static void print_signals(FILE *out) {
    const unsigned c_library_flag = 0x04000000; // SA_RESTORER, set by the caller of sigaction
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0) continue;
        const unsigned flags = (unsigned)action.sa_flags & ~c_library_flag;
        fprintf(out, "%d %p %#x\n", number, *(void **)&action.sa_handler, flags);
    }
}

static void print_signal_mask(FILE *out) {
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    for (int number = 1; number < NSIG; ++number)
        fputc(sigismember(&set, number) == 1 ? '1' : '0', out);
}

// Rounding and, on x86-64, masks and flushing of subnormals.
static void print_fp_mode(FILE *out) {
    fprintf(out, "rounding %d\n", fegetround());
#if defined(__x86_64__)
    const unsigned status_bits = 0x3f; // exceptions that were raised: any computation does that
    fprintf(out, "mxcsr %#x\n", __builtin_ia32_stmxcsr() & ~status_bits);
#endif
}

// There is no way to read it but to set it.
static void print_umask(FILE *out) {
    const mode_t mask = umask(0);
    umask(mask);
    fprintf(out, "%03o\n", (unsigned)mask);
}

static void print_directory(FILE *out) {
    char *path = getcwd(NULL, 0);
    fprintf(out, "%s\n", path ? path : "(none)");
    free(path);
}

static void print_affinity(FILE *out) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) return;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        fputc(CPU_ISSET(i, &set) ? '1' : '0', out);
    fprintf(out, "\npolicy %d nice %d\n", sched_getscheduler(0), getpriority(PRIO_PROCESS, 0));
}

// Which files the standard streams are, not their descriptors: dup2() keeps the number.
static void print_streams(FILE *out) {
    for (int fd = 0; fd <= 2; ++fd) {
        struct stat status;
        if (fstat(fd, &status) != 0) continue;
        fprintf(out, "%d is %llu:%llu\n", fd, (unsigned long long)status.st_dev,
                (unsigned long long)status.st_ino);
    }
}

static void print_limits(FILE *out) {
    for (int i = 0; i < RLIM_NLIMITS; ++i) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)i, &limit) != 0) continue;
        fprintf(out, "%d %llu %llu\n", i, (unsigned long long)limit.rlim_cur,
                (unsigned long long)limit.rlim_max);
    }
}

// Whether they are armed, not when they fire.
static void print_timers(FILE *out) {
    for (int i = ITIMER_REAL; i <= ITIMER_PROF; ++i) {
        struct itimerval timer;
        if (getitimer((__itimer_which_t)i, &timer) != 0) continue;
        fprintf(out, "%d %s\n", i,
                timer.it_value.tv_sec || timer.it_value.tv_usec ? "runs" : "off");
    }
}

// Writes one kind of state as text that is equal if the state is.
static void print_state(FILE *out, enum state_kind kind, const char *plugin) {
    switch (kind) {
    case STATE_THREADS: list_directory(out, "/proc/self/task"); break;
    case STATE_FILES: list_directory(out, "/proc/self/fd"); break;
    case STATE_MAPPINGS: print_lines_with(out, "/proc/self/maps", plugin); break;
    case STATE_SIGNALS: print_signals(out); break;
    case STATE_SIGNAL_MASK: print_signal_mask(out); break;
    case STATE_LOCALE:
        fprintf(out, "%s %s\n", setlocale(LC_ALL, NULL),
                uselocale((locale_t)0) == LC_GLOBAL_LOCALE ? "" : "and another one of the thread");
        break;
    case STATE_FP_MODE: print_fp_mode(out); break;
    case STATE_UMASK: print_umask(out); break;
    case STATE_DIRECTORY: print_directory(out); break;
    case STATE_ENVIRONMENT:
        for (char **variable = environ; *variable; ++variable)
            fprintf(out, "%s\n", *variable);
        break;
    case STATE_AFFINITY: print_affinity(out); break;
    case STATE_STREAMS: print_streams(out); break;
    case STATE_LIMITS: print_limits(out); break;
    case STATE_TIMERS: print_timers(out); break;
    case STATE_CHILDREN: print_lines_with(out, "/proc/thread-self/children", NULL); break;
    }
}

char *state_text(enum state_kind kind, const char *plugin) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    print_state(out, kind, plugin);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
