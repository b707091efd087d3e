// SPDX-License-Identifier: MIT
// ggml_log_set() and the messages of the core and of plugins.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/fork_lock.h"
#include "base/mem.h"
#include "ggml-impl.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_LOCK(log_lock);
static ggml_log_callback log_callback; // NULL: the default, stderr
static void *log_user_data;

static void log_to_stderr(enum ggml_log_level level, const char *text, void *user_data) {
    (void)level;
    (void)user_data;
    fputs(text, stderr);
    fflush(stderr);
}

void ggml_log_set(ggml_log_callback callback, void *user_data) {
    pthread_mutex_lock(&log_lock);
    log_callback = callback;
    log_user_data = user_data;
    pthread_mutex_unlock(&log_lock);
}

void ggml_log_get(ggml_log_callback *callback, void **user_data) {
    pthread_mutex_lock(&log_lock);
    // The default is returned as a function too, so that a caller can restore it.
    if (callback) *callback = log_callback ? log_callback : log_to_stderr;
    if (user_data) *user_data = log_user_data;
    pthread_mutex_unlock(&log_lock);
}

void ggml_log_internal(enum ggml_log_level level, const char *format, ...) {
    // Nearly every message fits: nothing is allocated for it.
    char small[512];
    ggml_log_callback callback;
    void *user_data;
    va_list args;
    ggml_log_get(&callback, &user_data);

    va_start(args, format);
    const int length = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (length < 0) return;

    char *large = NULL;
    if ((size_t)length >= sizeof(small) && (large = ggml_mem_alloc((size_t)length + 1)) != NULL) {
        va_start(args, format);
        vsnprintf(large, (size_t)length + 1, format, args);
        va_end(args);
    }
    // Outside the lock: the callback may log or set another callback. Without memory the message is
    // cut.
    callback(level, large ? large : small, user_data);
    ggml_mem_free(large);
}
