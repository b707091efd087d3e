// SPDX-License-Identifier: MIT
// The environment variables of env_list.inl.
#ifndef GGML_BASE_ENV_H
#define GGML_BASE_ENV_H

#include <stdbool.h>

enum ggml_env {
#define GGML_ENV_ROW(name, fallback, text) GGML_ENV_##name,
#include "base/env_list.inl"
    GGML_ENV_COUNT
};

// Value, or NULL if it is unset or empty, and always in a privileged process. [any-thread]
const char *ggml_env(enum ggml_env variable);
// The same by name, for plugins; NULL for names that are not ggml's or not in the table.
// [any-thread]
const char *ggml_env_by_name(const char *name);
// The same for a variable that a plugin reads, whatever its name. [any-thread]
const char *ggml_env_of_plugin(const char *name);
// Whether this process runs with more rights than its caller (setuid, file capabilities).
// [any-thread]
bool ggml_env_privileged(void);
// For tests: from now on it counts as such a process. [init]
void ggml_env_assume_privileged(bool privileged);

#endif
