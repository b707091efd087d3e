// SPDX-License-Identifier: MIT
// One environment variable of Windows, as UTF-8.
#ifndef GGML_BASE_ENV_WIN32_H
#define GGML_BASE_ENV_WIN32_H

#include "base/env.h"

// The variable's value now (GGML_ENV_COUNT: one that is not in the list), in UTF-8; NULL if it is
// unset. Stays valid. [any-thread]
const char *env_read(enum ggml_env variable, const char *name);

#endif
