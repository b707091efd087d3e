// SPDX-License-Identifier: MIT
// State of the process that plugins should leave alone. What they changed is undone where possible,
// and a warning names the plugin in any case.
#define _GNU_SOURCE
#include "plugin/registry/process_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-impl.h"

#ifndef _WIN32
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#endif

// Logs a change: `what` was changed at `when`; `mended` says whether it was undone.
static void warn(const char *plugin, const char *when, const char *what, bool mended) {
    GGML_LOG_WARN("plugin '%s' changed %s of the process %s, which %s\n", plugin, what, when,
                  mended ? "was undone" : "can't be undone");
}

// --- floating point

// The control words alone: status flags, which fenv_t has too, change with every computation. Of
// other processors the rounding is known.
static uint64_t read_float_modes(void) {
#if defined(__x86_64__)
    const uint32_t flags = 0x3f;
    uint16_t x87;
    uint32_t sse;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    __asm__ volatile("stmxcsr %0" : "=m"(sse));
    return (uint64_t)x87 << 32 | (sse & ~flags);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return (uint64_t)fegetround();
#endif
}

static void restore_floats(const struct process_state *state, const char *plugin,
                           const char *when) {
    if (!state->has_floats || read_float_modes() == state->float_modes) return;
    warn(plugin, when, "the floating-point environment", fesetenv(&state->floats) == 0);
}

static void save_floats(struct process_state *state) {
    memset(&state->floats, 0, sizeof(state->floats));
    state->has_floats = fegetenv(&state->floats) == 0;
    state->float_modes = read_float_modes();
}

#ifdef _WIN32

void process_state_save(struct process_state *out_state) {
    save_floats(out_state);
}

void process_state_restore(struct process_state *state, const char *plugin, const char *when) {
    restore_floats(state, plugin, when);
}

#else

// --- signals, files, limits

// Reads the umask from /proc: asking by umask() would change it for a moment, for all threads. -1
// where there is no other way.
static int read_umask(void) {
#ifdef __linux__
    char text[512];
    unsigned mask;
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "\nUmask:");
    return line && sscanf(line, " Umask: %o", &mask) == 1 ? (int)mask : -1;
#else
    return -1;
#endif
}

static void restore_umask(const struct process_state *state, const char *plugin, const char *when) {
    const int now = read_umask();
    if (state->umask < 0 || now < 0 || now == state->umask) return;
    umask((mode_t)state->umask);
    warn(plugin, when, "the umask", true);
}

// Compares and restores the signal mask of this thread, signal by signal: sets may contain padding.
static void restore_signals(const struct process_state *state, const char *plugin,
                            const char *when) {
    sigset_t now;
    bool same = true;
    if (pthread_sigmask(SIG_SETMASK, NULL, &now) != 0) return;
    for (int i = 1; i < 65; ++i)
        same = same && sigismember(&now, i) == sigismember(&state->signals, i);
    if (same) return;
    warn(plugin, when, "the signal mask", pthread_sigmask(SIG_SETMASK, &state->signals, NULL) == 0);
}

// Keeps the working directory by descriptor, since its path may be renamed; -1 if it can't be
// opened, and then it isn't restored.
static void save_directory(struct process_state *state) {
#ifdef O_PATH
    state->directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
#else
    state->directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
#endif
    if (state->directory < 0 || fstat(state->directory, &state->directory_info) == 0) return;
    close(state->directory);
    state->directory = -1;
}

static void restore_directory(const struct process_state *state, const char *plugin,
                              const char *when) {
    struct stat now;
    if (state->directory < 0) return;
    const bool same = stat(".", &now) == 0 && now.st_dev == state->directory_info.st_dev &&
                      now.st_ino == state->directory_info.st_ino;
    if (!same) warn(plugin, when, "the working directory", fchdir(state->directory) == 0);
    close(state->directory);
}

#ifdef RLIM_NLIMITS
enum { N_LIMITS = (int)RLIM_NLIMITS < PROCESS_MAX_LIMITS ? (int)RLIM_NLIMITS : PROCESS_MAX_LIMITS };
#else
enum { N_LIMITS = 8 };
#endif

static void save_limits(struct process_state *state) {
    for (int i = 0; i < N_LIMITS; ++i)
        state->has_limit[i] = getrlimit(i, &state->limits[i]) == 0;
}

// Restores limits. A hard limit that was lowered can't be raised without rights; the soft limit
// then gets as close as possible.
static void restore_limits(const struct process_state *state, const char *plugin,
                           const char *when) {
    bool same = true, mended = true;
    for (int i = 0; i < N_LIMITS; ++i) {
        struct rlimit now;
        const struct rlimit *then = &state->limits[i];
        if (!state->has_limit[i] || getrlimit(i, &now) != 0) continue;
        if (now.rlim_cur == then->rlim_cur && now.rlim_max == then->rlim_max) continue;
        same = false;
        if (setrlimit(i, then) == 0) continue;
        mended = false;
        now.rlim_cur = then->rlim_cur < now.rlim_max ? then->rlim_cur : now.rlim_max;
        setrlimit(i, &now);
    }
    if (!same) warn(plugin, when, "resource limits", mended);
}

void process_state_save(struct process_state *out_state) {
    save_floats(out_state);
    pthread_sigmask(SIG_SETMASK, NULL, &out_state->signals);
    out_state->umask = read_umask();
    save_directory(out_state);
    save_limits(out_state);
}

void process_state_restore(struct process_state *state, const char *plugin, const char *when) {
    restore_floats(state, plugin, when);
    restore_signals(state, plugin, when);
    restore_umask(state, plugin, when);
    restore_directory(state, plugin, when);
    restore_limits(state, plugin, when);
}

#endif
