// SPDX-License-Identifier: MIT
// Reads the environment. In a process with more rights than its caller (AT_SECURE, issetugid())
// every variable reads as not set, because the caller controls them. An empty one reads as not set
// too.
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "base/env.h"

#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(_WIN32)
#include "base/env_win32.h"
#else
#include <unistd.h>
#endif

static const char *const names[GGML_ENV_COUNT] = {
#define GGML_ENV_ROW(name, fallback, text) #name,
#include "base/env_list.inl"
};

// Set by tests only.
static bool assume_privileged;

#ifndef _WIN32
static const char *env_read(enum ggml_env variable, const char *name) {
    (void)variable;
    return getenv(name);
}
#endif

void ggml_env_assume_privileged(bool privileged) {
    assume_privileged = privileged;
}

bool ggml_env_privileged(void) {
    if (assume_privileged) return true;
#if defined(__linux__)
    return getauxval(AT_SECURE) != 0;
#elif defined(_WIN32)
    return false;
#else
    return issetugid() != 0;
#endif
}

const char *ggml_env(enum ggml_env variable) {
    if (ggml_env_privileged()) return NULL;
    // Empty counts as unset: shells have no handy way to unset a variable for one command.
    const char *value = env_read(variable, names[variable]);
    return value && value[0] != '\0' ? value : NULL;
}

const char *ggml_env_of_plugin(const char *name) {
    if (ggml_env_privileged()) return NULL;
    const char *value = env_read(GGML_ENV_COUNT, name);
    return value && value[0] != '\0' ? value : NULL;
}

// O(variables): a plugin asks a few times, while it is initialised.
const char *ggml_env_by_name(const char *name) {
    if (strncmp(name, "GGML_", strlen("GGML_")) != 0) return NULL;
    for (int i = 0; i < GGML_ENV_COUNT; ++i) {
        if (strcmp(names[i], name) == 0) return ggml_env((enum ggml_env)i);
    }
    return NULL;
}
