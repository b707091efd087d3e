// SPDX-License-Identifier: MIT
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "base/env.h"

#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/auxv.h>
#elif !defined(_WIN32)
#include <unistd.h>
#endif

struct env_row {
    const char *name;
    bool privileged;
};

static const struct env_row rows[GGML_ENV_COUNT] = {
#define GGML_ENV_ROW(name, privileged, fallback, text) {#name, privileged},
#include "base/env_list.inl"
};

bool ggml_env_privileged(void) {
#if defined(__linux__)
    return getauxval(AT_SECURE) != 0;
#elif defined(_WIN32)
    return false;
#else
    return issetugid() != 0;
#endif
}

const char *ggml_env(enum ggml_env variable) {
    if (!rows[variable].privileged && ggml_env_privileged()) return NULL;
    const char *value = getenv(rows[variable].name);
    return value && value[0] != '\0' ? value : NULL;
}

const char *ggml_env_by_name(const char *name) {
    for (int i = 0; i < GGML_ENV_COUNT; ++i) {
        if (strcmp(rows[i].name, name) == 0) return ggml_env((enum ggml_env)i);
    }
    return NULL;
}
