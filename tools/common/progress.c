// SPDX-License-Identifier: MIT
// A thread writes the line again with the seconds that went by, so that the thread at work need
// not.
#define _GNU_SOURCE
#include "progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#if defined(__GLIBC__)
#include <unistd.h>
#endif

#include "terminal.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_t thread;
    bool is_running; // the thread
    bool is_over;
    bool is_shown;
    struct timespec start, last; // last: when the line was written
    char text[160];
    FILE *own_output; // NULL: stdout is not diverted
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static void show(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const long seconds = (long)(now.tv_sec - state.start.tv_sec);
    const unsigned width = terminal_width(stderr);
    char line[200];
    snprintf(line, sizeof(line), "%s, %ld s", state.text, seconds);
    fprintf(stderr, "\r%.*s\033[K", width > 1 ? (int)width - 1 : (int)sizeof(line), line);
    fflush(stderr);
    state.is_shown = true;
    state.last = now;
}

// Texts may change many thousand times a second.
static bool is_due(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double since = (double)(now.tv_sec - state.last.tv_sec) +
                         (double)(now.tv_nsec - state.last.tv_nsec) * 1e-9;
    return since > 0.1 || since < 0;
}

static void *run(void *unused) {
    struct timespec next = state.start;
    next.tv_sec += 1;
    pthread_mutex_lock(&state.lock);
    while (!state.is_over) {
        if (pthread_cond_timedwait(&state.ended, &state.lock, &next) == 0) continue;
        if (!state.is_over) show();
        ++next.tv_sec;
    }
    pthread_mutex_unlock(&state.lock);
    return unused;
}

#if defined(__GLIBC__)
// Lines of the standard output that go to the same terminal come in the progress line's place.
static ssize_t write_line(void *unused, const char *bytes, size_t size) {
    (void)unused;
    pthread_mutex_lock(&state.lock);
    if (state.is_shown) fputs("\r\033[K", stderr);
    state.is_shown = false;
    const ssize_t n = write(STDOUT_FILENO, bytes, size);
    pthread_mutex_unlock(&state.lock);
    return n < 0 ? 0 : n; // 0 is how a cookie tells an error
}

// glibc lets stdout be another stream. It is the own one again after the end, which alone says of
// itself that it is a terminal.
static void divert_output(void) {
    if (!terminal_is_capable(stdout)) return;
    FILE *lines = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_line});
    if (!lines) return;
    fflush(stdout);
    setvbuf(lines, NULL, _IOLBF, BUFSIZ);
    state.own_output = stdout;
    stdout = lines;
}

static void restore_output(void) {
    if (!state.own_output) return;
    fclose(stdout);
    stdout = state.own_output;
    state.own_output = NULL;
}
#else
static void divert_output(void) {
}
static void restore_output(void) {
}
#endif

void progress_set(const char *text) {
    pthread_mutex_lock(&state.lock);
    snprintf(state.text, sizeof(state.text), "%s", text);
    if (state.is_shown && is_due()) show();
    pthread_mutex_unlock(&state.lock);
}

void progress_begin(const char *text) {
    progress_set(text);
    if (state.is_running || !terminal_is_capable(stderr)) return;
    divert_output();
    clock_gettime(CLOCK_REALTIME, &state.start);
    state.is_over = state.is_shown = false;
    state.is_running = pthread_create(&state.thread, NULL, run, NULL) == 0;
    if (!state.is_running) restore_output();
}

void progress_end(void) {
    if (!state.is_running) return;
    pthread_mutex_lock(&state.lock);
    state.is_over = true;
    pthread_cond_signal(&state.ended);
    pthread_mutex_unlock(&state.lock);
    pthread_join(state.thread, NULL);
    state.is_running = false;
    restore_output();
    if (state.is_shown) fputs("\r\033[K", stderr);
    state.is_shown = false;
}
