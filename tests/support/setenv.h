// SPDX-License-Identifier: MIT
// setenv() and unsetenv() also where the system has another name for them.
#ifndef TESTS_SUPPORT_SETENV_H
#define TESTS_SUPPORT_SETENV_H

#include <stdlib.h>

#ifdef _WIN32
static inline int setenv(const char *name, const char *value, int overwrite) {
    return overwrite || !getenv(name) ? _putenv_s(name, value) : 0;
}

static inline int unsetenv(const char *name) {
    return _putenv_s(name, "");
}
#endif

#endif
