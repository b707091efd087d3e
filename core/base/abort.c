// SPDX-License-Identifier: MIT
// ggml_abort: for clients' own assertions. The library never calls it for anything a client did.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "ggml-impl.h"

#ifdef __GLIBC__
#include <execinfo.h>
#include <unistd.h>
#endif

// NULL: the message goes to stderr. Atomic, because any thread may abort while another one sets it.
static _Atomic(ggml_abort_callback_t) abort_callback;

ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback) {
    return atomic_exchange(&abort_callback, callback);
}

static void print_backtrace(void) {
#ifdef __GLIBC__
    void *frames[64];
    if (ggml_env(GGML_ENV_GGML_NO_BACKTRACE)) return;
    backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
#endif
}

void ggml_abort(const char *file, int line, const char *fmt, ...) {
    char message[2048];
    va_list args;
    // What the program printed before comes before the message, also where both go to one file.
    fflush(stdout);
    const int prefix = snprintf(message, sizeof(message), "%s:%d: ", file, line);
    if (prefix > 0 && (size_t)prefix < sizeof(message)) {
        va_start(args, fmt);
        vsnprintf(message + prefix, sizeof(message) - (size_t)prefix, fmt, args);
        va_end(args);
    }
    const ggml_abort_callback_t callback = atomic_load(&abort_callback);
    if (callback) {
        callback(message);
    } else {
        fprintf(stderr, "%s\n", message);
        print_backtrace();
    }
    abort();
}
