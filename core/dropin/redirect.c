// SPDX-License-Identifier: MIT
// libggml.so.0: nothing of its own but the registry (registry.c). Programs that name it find
// everything else in the libraries that it needs.
#include "ggml.h"

void ggml_log_callback_default(enum ggml_log_level level, const char *text, void *user_data);

// One reference into each library, since linkers may leave out those of which nothing is used.
__attribute__((used)) static void (*const of_base)(enum ggml_log_level, const char *,
                                                   void *) = ggml_log_callback_default;
__attribute__((used)) static const char *(*const of_host)(void) = ggml_version;
