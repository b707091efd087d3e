// SPDX-License-Identifier: MIT
// Errors, settings and the names of threads.
#ifndef VK_UTIL_H
#define VK_UTIL_H

#include "ggml-impl.h"
#include "ggml-plugin.h"

// Tells the host why the current call fails. Answers the status of a graph: ALLOC_FAILED for
// GGML_HOST_OUT_OF_MEMORY, FAILED for everything else. [any-thread]
enum ggml_status vk_fail(enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);
// Value of a variable of the host's environment table, "" when it is not set. [any-thread]
const char *vk_config(const char *name);
// Whether a comma-separated list holds the word. [any-thread]
bool vk_has_word(const char *list, const char *word);
// Names the calling thread for debuggers, where the system can. [any-thread]
void vk_name_thread(const char *name);

#endif
