// SPDX-License-Identifier: MIT
// What a plugin should not do to its process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "defective.h"

static void on_signal(int number) {
    (void)number;
}

static void *wait_forever(void *unused) {
    for (;;)
        pause();
    return unused;
}

// A thread that outlives the mapping of this file must not run its code, even in its first moment:
// it runs the C library's pause(), which takes no notice of the argument.
static void *(*pause_of_libc(void))(void *) {
    int (*const start)(void) = pause;
    void *(*result)(void *);
    memcpy(&result, &start, sizeof(result));
    return result;
}

static pthread_t thread;
static int file = -1;
static struct sigaction old_action;

// Messages as a check writes them ("passed"), into everything that is open. F28 of a security
// review: they had no key.
static void forge_verdicts(void) {
    static const struct {
        uint32_t magic, verdict;
        char rest[496];
    } passed = {.magic = UINT32_C(0x4b484347), .verdict = 1};
    for (int fd = 3; fd < 64; ++fd) {
        const ssize_t n = write(fd, &passed, sizeof(passed));
        (void)n;
    }
}

__attribute__((constructor)) static void map_begin(void) {
    if (HAS(map_thread)) pthread_create(&thread, NULL, wait_forever, NULL);
    if (HAS(map_file)) file = open("/dev/null", O_RDONLY);
    if (HAS(map_signal))
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, &old_action);
    if (HAS(map_environment)) setenv("DEFECT", "1", 1);
    if (HAS(map_prints)) fprintf(stderr, "defect: hello\n");
    if (HAS(map_crashes)) raise(SIGSEGV);
    if (HAS(map_forges)) forge_verdicts();
}

__attribute__((destructor)) static void map_end(void) {
    if (HAS(map_thread)) {
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    if (file >= 0) close(file);
    if (HAS(map_signal)) sigaction(SIGUSR1, &old_action, NULL);
    if (HAS(map_environment)) unsetenv("DEFECT");
}

static void limit_files(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    --limit.rlim_cur;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void block_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void start_timer(void) {
    const struct itimerval timer = {.it_value.tv_sec = 100000};
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

static void keep_mapped(void) {
    Dl_info info;
    if (dladdr((void *)(uintptr_t)on_signal, &info)) dlopen(info.dli_fname, RTLD_NOW);
}

static void start_process(void) {
    if (fork() != 0) return;
    for (;;)
        pause();
}

static void replace_input(void) {
    const int null = open("/proc/self/exe", O_RDONLY);
    dup2(null, 0);
    close(null);
}

// The lowest priority can't be lowered further.
static void lower_priority(void) {
    const int nice_level = getpriority(PRIO_PROCESS, 0);
    if (nice_level < 19) {
        setpriority(PRIO_PROCESS, 0, nice_level + 1);
    } else {
        const int other = sched_getscheduler(0) == SCHED_BATCH ? SCHED_OTHER : SCHED_BATCH;
        sched_setscheduler(0, other, &(struct sched_param){0});
    }
}

// --- what only use ends --------------------------------------------------------------------------

static int unused_file = -1;
static pthread_t unused_thread;
static bool has_unused_thread;
static pthread_key_t key;

static void forget(void *value) {
    (void)value;
}

void process_use(void) {
    if (unused_file >= 0) close(unused_file);
    unused_file = -1;
    if (has_unused_thread) {
        pthread_cancel(unused_thread);
        pthread_join(unused_thread, NULL);
    }
    has_unused_thread = false;
    if (HAS(leaves_key)) pthread_setspecific(key, &key);
}

__attribute__((destructor)) static void check_attached(void) {
    if (HAS(exit_crashes) && is_attached()) abort();
}

void process_begin(void) {
    if (HAS(unused_leaves_file)) unused_file = open("/dev/null", O_RDONLY);
    if (HAS(unused_leaves_thread))
        has_unused_thread = pthread_create(&unused_thread, NULL, pause_of_libc(), NULL) == 0;
    if (HAS(leaves_key)) pthread_key_create(&key, forget);
    if (HAS(leaves_thread)) pthread_create(&thread, NULL, pause_of_libc(), NULL);
    if (HAS(leaves_file)) open("/dev/null", O_RDONLY);
    if (HAS(leaves_mapping)) keep_mapped();
    if (HAS(leaves_signal)) signal(SIGUSR1, on_signal);
    if (HAS(leaves_signal_mask)) block_signal();
    if (HAS(leaves_locale)) setlocale(LC_ALL, "C.UTF-8");
    if (HAS(leaves_fp_mode)) fesetround(FE_UPWARD);
    if (HAS(leaves_umask)) umask(077);
    if (HAS(leaves_directory) && chdir("/") != 0) abort();
    if (HAS(leaves_environment)) setenv("DEFECT", "1", 1);
    if (HAS(leaves_priority)) lower_priority();
    if (HAS(leaves_stream)) replace_input();
    if (HAS(leaves_limit)) limit_files();
    if (HAS(leaves_timer)) start_timer();
    if (HAS(leaves_process)) start_process();
    if (HAS(prints)) printf("defect: ready\n");
}
