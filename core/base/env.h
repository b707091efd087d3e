// SPDX-License-Identifier: MIT
// The environment variables of env_list.inl.
#ifndef GGML_BASE_ENV_H
#define GGML_BASE_ENV_H

#include <stdbool.h>

enum ggml_env {
#define GGML_ENV_ROW(name, privileged, fallback, text) GGML_ENV_##name,
#include "base/env_list.inl"
    GGML_ENV_COUNT
};

// Value, or NULL if it is unset, empty or not to be trusted in this process. [any-thread]
const char *ggml_env(enum ggml_env variable);
// The same by name; NULL for names that are not in the table. [any-thread]
const char *ggml_env_by_name(const char *name);
// Whether this process runs with more rights than its caller (setuid, file capabilities). [any-thread]
bool ggml_env_privileged(void);

#endif
